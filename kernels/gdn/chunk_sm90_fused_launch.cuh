// gdn.chunk_sm90_fused: the launch for one io type and head size.
#pragma once
#include "kernels/gdn/chunk_sm90_fused.cuh"
#include "kernels/gdn/chunk_sm90_launch.cuh"

namespace deltagauge::kernels::gdn {
namespace chunk_sm90 {

template <class Io, class Shape>
void launch_fused(const Params& p, cudaStream_t stream) {
  constexpr char kWhat[] = "gdn.chunk_sm90_fused";
  const Args& a = p.args;
  const std::int64_t blocks = a.N * a.HV * Shape::splits;
  constexpr std::size_t kShared = sizeof(FusedSmem<Io, Shape>);
  const bool taps = a.tap_S != nullptr || a.tap_v_new != nullptr;
  runtime::launch(kWhat, taps ? fused<Io, Shape, true> : fused<Io, Shape, false>, blocks, Shape::threads, kShared, stream, p,
                  maps_of(p));
}

}  // namespace chunk_sm90

template <class Io, int kD>
void launch_chunk_sm90_fused_as(const Args& args, cudaStream_t stream) {
  using namespace chunk_sm90;
  Params params{};
  params.args = args;
  params.dense = args.cu_seqlens == nullptr ? args.T / args.N : 0;
  // V rows of a (sequence, head) in one block, or over two where there are few pairs; rows of S never meet, so the bits are
  // the same. Two groups of scaled rows (f16) do not fit the registers.
  if constexpr (kD == 128 && !std::is_same_v<Io, __half>)
    if (2 * args.N * args.HV > limits().sms) return launch_fused<Io, FusedShape<kD, 2>>(params, stream);
  launch_fused<Io, FusedShape<kD, 1>>(params, stream);
}

}  // namespace deltagauge::kernels::gdn
