// Gate transform, element by element in FP32. x, g [T, W] with W = HV (per head) or HV * K (per channel), dt_bias [W],
// A_log [HV]; y = x + dt_bias, a = exp(A_log), or exactly 1 without A_log:
//   softplus: g = -a (max(y, 0) + log1p(exp(-|y|)))        bounded: g = lower_bound sigmoid(a y)
// grid: as many blocks as it takes, at most kMaxBlocks, which then walk        block: kThreads threads, kPack elements each
#pragma once
#include <cuda_runtime.h>

#include <algorithm>

#include "kernels/device/convert.cuh"
#include "kernels/device/gate.cuh"
#include "kernels/device/varlen.cuh"
#include "kernels/gate/gate.h"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gate {

inline constexpr int kThreads = 256, kPack = 8, kTile = kThreads * kPack;
inline constexpr std::int64_t kMaxBlocks = 1 << 20;

struct Params {
  Args args;
  bool wide;  // kPack neighbours can be read and written at once, and share a head or have one each
};

template <class Math>
__device__ float transform(const Args& p, float y, const GateScale& scale) {
  if (p.transform == Transform::softplus) return softplus_gate<Math>(y, scale);
  return bounded_gate<Math>(y, scale, p.lower_bound);
}

template <class Io, class Math>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Params p) {
  const Args& a = p.args;
  const auto K = static_cast<std::uint32_t>(a.K), W = static_cast<std::uint32_t>(a.HV) * K;
  const std::int64_t end = active_rows(a.cu_seqlens, a.N, a.T) * W;
  const Io* x = static_cast<const Io*>(a.x);

  for (std::int64_t tile = static_cast<std::int64_t>(blockIdx.x) * kTile; tile < end;
       tile += static_cast<std::int64_t>(gridDim.x) * kTile) {
    const auto column0 = static_cast<std::uint32_t>(tile % W);  // of the tile's first element; column0 + kTile < 2^32
    if (p.wide) {
      const std::uint32_t local = threadIdx.x * kPack, column = (column0 + local) % W;
      if (tile + local >= end) continue;
      const Pack<Io, kPack> raw = *reinterpret_cast<const Pack<Io, kPack>*>(x + tile + local);
      const Pack<float, kPack> bias = *reinterpret_cast<const Pack<float, kPack>*>(a.dt_bias + column);
      Pack<float, kPack> g;
      const GateScale shared_scale = head_scale(a.A_log, column / K);
#pragma unroll
      for (int i = 0; i < kPack; ++i) {
        const GateScale scale = K == 1 ? head_scale(a.A_log, column + i) : shared_scale;
        g.at[i] = transform<Math>(a, to_f32(raw.at[i]) + bias.at[i], scale);
      }
      *reinterpret_cast<Pack<float, kPack>*>(a.g + tile + local) = g;
    } else {
      for (std::uint32_t local = threadIdx.x; local < kTile && tile + local < end; local += kThreads) {
        const std::uint32_t column = (column0 + local) % W;
        a.g[tile + local] = transform<Math>(a, to_f32(x[tile + local]) + a.dt_bias[column], head_scale(a.A_log, column / K));
      }
    }
  }
}

template <class Io, class Math>
void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t W = args.HV * args.K, elements = args.T * W;
  const Params params{.args = args,
                      .wide = W % kPack == 0 && (args.K == 1 || args.K % kPack == 0) &&
                              runtime::aligned(args.x, alignof(Pack<Io, kPack>)) && runtime::aligned(args.g, 16) &&
                              runtime::aligned(args.dt_bias, 16)};
  runtime::launch("gate", kernel<Io, Math>, std::min((elements + kTile - 1) / kTile, kMaxBlocks), kThreads, 0, stream,
                  params);
}

template <class Math>
void launch_as(const Args& args, cudaStream_t stream) {
  if (args.io == DType::f32) return launch<float, Math>(args, stream);
  if (args.io == DType::bf16) return launch<__nv_bfloat16, Math>(args, stream);
  launch<__half, Math>(args, stream);
}

// In gate_fast.cu.
void launch_fast(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gate
