// Context parallelism on a device (docs/cp.md): what a rank publishes, and the states that its segments start from. Reads
// nothing but device memory, so a captured call follows other routing of the same shapes. Every step is S <- S A + B, each
// element summed from B on by ascending column of S, each step a fused multiply-add: the bits of
// reference/cp.h:merge_state.
#pragma once
#include <cstdint>

namespace deltagauge::kernels::cp {

// Device pointers; states and maps f32. A number outside its range stands for nothing, as the padding does, so that bad
// routing leads to wrong states but to no access outside the tensors.
struct ComposeArgs {
  // The forward half of the rank's routing (kernels/cp/routing.h).
  const std::int32_t* published = nullptr;  // [slots]
  const std::int32_t* source = nullptr;     // [segments]
  const std::int32_t* fold = nullptr;       // [fragments, world * slots]
  const float* initial = nullptr;           // [segments, HV, V, K] of the segments that start a document; or null: zero
  const float* bias = nullptr;              // [segments, HV, V, K] of this rank
  const float* transition = nullptr;        // [segments, HV, K, K]
  float* own = nullptr;                     // [slots, HV, V + K, K] this rank's part of what is gathered
  const float* gathered = nullptr;          // [world * slots, HV, V + K, K]
  float* entry = nullptr;                   // [segments, HV, V, K]
  std::int64_t segments = 0, fragments = 0, slots = 0, world = 1, HV = 0, K = 0, V = 0;
};

// own from bias and transition; a document's first map gets its initial state into its bias. Slots of nothing stay as they
// are.
void publish(const ComposeArgs& args, void* stream);
// entry from everything but own.
void compose(const ComposeArgs& args, void* stream);
// Both check every argument (throw Error with expected and got), then enqueue one kernel on stream (a cudaStream_t). They
// never allocate and never synchronise.

}  // namespace deltagauge::kernels::cp
