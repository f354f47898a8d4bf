// Where the state of a sequence is and what happens to it (docs/math.md#state-pool), asked alike by every gdn kernel.
#pragma once
#include "kernels/device/convert.cuh"
#include "kernels/device/varlen.cuh"
#include "kernels/gdn/gdn.h"

namespace deltagauge::kernels::gdn {

struct StateSlot {
  std::int64_t first;  // its [HV, V, K], in elements from initial_state and final_state
  bool read;           // it starts from initial_state, else from zero
  bool write;          // its final state is wanted
  bool absent;         // it has no slot: its rows of o are zero and nothing else is touched
};

// An index at or past the end of the pool counts as none. An empty sequence that reads its slot leaves it as it is.
__device__ inline StateSlot state_slot(const Args& a, std::int64_t n, bool empty) {
  if (a.state_indices == nullptr) return {n * a.HV * a.V * a.K, a.initial_state != nullptr, a.final_state != nullptr, false};
  const std::int64_t slot = a.state_indices[n];
  if (slot <= 0 || slot >= a.slots) return {0, false, false, true};
  const bool read = a.has_initial_state == nullptr || a.has_initial_state[n] != 0;
  return {slot * a.slot_stride, read, !empty || !read, false};
}

// The block writes zeros to columns first .. first + count - 1 of value head h, those below V, in these rows of o.
template <class Io>
__device__ void zero_output(const Args& a, std::int64_t h, const Rows& rows, int first, int count) {
  for (std::int64_t i = threadIdx.x; i < (rows.end - rows.begin) * count; i += blockDim.x) {
    const std::int64_t v = first + i % count;
    if (v < a.V) static_cast<Io*>(a.o)[((rows.begin + i / count) * a.HV + h) * a.V + v] = from_f32<Io>(0.0f);
  }
}

}  // namespace deltagauge::kernels::gdn
