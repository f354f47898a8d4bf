// gdn.chunk_sm90: the two launches for one io type and head size.
#pragma once
#include <limits>

#include "kernels/gdn/chunk_sm80_launch.cuh"
#include "kernels/gdn/chunk_sm90_prepare.cuh"
#include "kernels/gdn/chunk_sm90_state.cuh"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gdn {
namespace chunk_sm90 {

template <class Io, class Shape>
void launch_states(const Params& p, cudaStream_t stream) {
  runtime::launch("gdn.chunk_sm90 states", states<Io, Shape>, p.args.N * p.args.HV * Shape::splits, Shape::threads,
                  sizeof(Smem90<Io, Shape>), stream, p);
}

}  // namespace chunk_sm90

// Few (sequence, head) pairs: their V rows over two blocks. Rows of S never meet, so the bits are the same.
template <class Io, int kD>
void launch_chunk_sm90_as(const chunk_sm80::Params& p, cudaStream_t stream) {
  using namespace chunk_sm90;
  constexpr char kPrepare[] = "gdn.chunk_sm90 prepare";
  constexpr auto kKernel = chunk_sm90::prepare<Io, kD>;
  constexpr std::size_t kShared = sizeof(PrepareSmem90<Io, kD>);
  const std::int64_t items = p.slots * p.args.HK,
                     resident = runtime::resident_blocks(kPrepare, kKernel, kPrepareThreads, kShared);
  if (items > std::numeric_limits<std::int32_t>::max())
    fail(kPrepare, ": expected at most ", std::numeric_limits<std::int32_t>::max(), " chunks of key heads, got ", items);
  runtime::launch(kPrepare, kKernel, items < resident ? items : resident, kPrepareThreads, kShared, stream, p);
  if constexpr (kD == 128)
    if (2 * p.args.N * p.args.HV > limits().sms) return launch_states<Io, Shape90<kD, 2>>(p, stream);
  launch_states<Io, Shape90<kD, 1>>(p, stream);
}

}  // namespace deltagauge::kernels::gdn
