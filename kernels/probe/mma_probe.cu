// One mma.sync a vector: row 0 of a, column 0 of b, element (0, 0) of c and d; the rest of the tile is zero.
// grid: x = ceil(count / kWarps)        block: kWarps warps, one vector each
#include "kernels/probe/mma_probe.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <type_traits>

#include "kernels/device/ptx/mma_m16n8k16.cuh"
#include "kernels/device/ptx/mma_tf32.cuh"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/buffer.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::probe {
namespace {

constexpr int kWarps = 4;

struct Params {
  const float *a, *b, *c;
  float* d;
  std::int64_t count;
};

template <class T>
__device__ std::uint32_t bits(float x);
template <>
__device__ std::uint32_t bits<__nv_bfloat16>(float x) {
  return __bfloat16_as_ushort(__float2bfloat16_rn(x));
}
template <>
__device__ std::uint32_t bits<__half>(float x) {
  return __half_as_ushort(__float2half_rn(x));
}

template <MmaKind kKind>
__global__ void __launch_bounds__(32 * kWarps) kernel(Params p) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kWarps + threadIdx.x / 32;
  if (i >= p.count) return;
  const int lane = threadIdx.x % 32;
  const bool first = lane < 4;  // lanes of row 0 of a and column 0 of b
  float d[4] = {lane == 0 ? p.c[i] : 0.0f, 0, 0, 0};
  std::uint32_t a[4] = {}, b[2] = {};
  if constexpr (kKind == MmaKind::tf32) {
    if (first)
      for (int r = 0; r < 2; ++r) {
        a[2 * r] = __float_as_uint(p.a[8 * i + lane + 4 * r]);
        b[r] = __float_as_uint(p.b[8 * i + lane + 4 * r]);
      }
    ptx::mma_m16n8k8_tf32(d, a, b);
  } else {
    using T = std::conditional_t<kKind == MmaKind::bf16, __nv_bfloat16, __half>;
    if (first)
      for (int r = 0; r < 2; ++r) {
        const std::int64_t at = 16 * i + 2 * lane + 8 * r;
        a[2 * r] = bits<T>(p.a[at]) | bits<T>(p.a[at + 1]) << 16;
        b[r] = bits<T>(p.b[at]) | bits<T>(p.b[at + 1]) << 16;
      }
    ptx::mma_m16n8k16<T>(d, a, b[0], b[1]);
  }
  if (lane == 0) p.d[i] = d[0];
}

}  // namespace

void mma(MmaKind kind, const float* a, const float* b, const float* c, float* d, std::int64_t count) {
  runtime::require_size("probe.mma", "count", count, 0);
  if (count == 0) return;
  const auto scalars = static_cast<std::size_t>(count) * sizeof(float);
  const std::size_t vectors = scalars * static_cast<std::size_t>(mma_length(kind));
  const runtime::Stream stream;
  runtime::Buffer on_a(vectors), on_b(vectors), on_c(scalars), on_d(scalars);
  on_a.upload(a, vectors, stream);
  on_b.upload(b, vectors, stream);
  on_c.upload(c, scalars, stream);
  const Params params{on_a.as<float>(), on_b.as<float>(), on_c.as<float>(), on_d.as<float>(), count};
  const auto kernel_of_kind = kind == MmaKind::bf16  ? kernel<MmaKind::bf16>
                              : kind == MmaKind::f16 ? kernel<MmaKind::f16>
                                                     : kernel<MmaKind::tf32>;
  runtime::launch("probe.mma", kernel_of_kind, (count + kWarps - 1) / kWarps, 32 * kWarps, 0,
                  static_cast<cudaStream_t>(stream.get()), params);
  on_d.download(d, scalars, stream);
}

}  // namespace deltagauge::kernels::probe
