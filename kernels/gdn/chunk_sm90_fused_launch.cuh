// gdn.chunk_sm90_fused: the launch for one io type and head size.
#pragma once
#include "kernels/gdn/chunk_sm90_fused.cuh"
#include "kernels/gdn/chunk_sm90_launch.cuh"

namespace deltagauge::kernels::gdn {

template <class Io, int kD>
void launch_chunk_sm90_fused_as(const Args& args, cudaStream_t stream) {
  using namespace chunk_sm90;
  constexpr char kWhat[] = "gdn.chunk_sm90_fused";
  static_assert(kD == kFusedD);
  Params params{};
  params.args = args;
  params.dense = args.cu_seqlens == nullptr ? args.T / args.N : 0;
  const bool taps = args.tap_Ainv != nullptr || args.tap_S != nullptr || args.tap_v_new != nullptr;
  const auto kernel = taps          ? args.l2norm ? fused<Io, true, true> : fused<Io, true, false>
                               : args.l2norm ? fused<Io, false, true>
                                    : fused<Io, false, false>;
  runtime::launch(kWhat, kernel, args.N * args.HV, kFusedThreads, sizeof(FusedSmem<Io>), stream, params,
                  maps_of(params, kShort));
}

}  // namespace deltagauge::kernels::gdn
