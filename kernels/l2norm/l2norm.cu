// Row normalisation: y = x r, r = 1 / sqrt(sum x^2 + 1e-6), x and y [T, H, K], in FP32.
// grid: as many blocks as it takes, at most kMaxBlocks, which then walk        block: kThreads threads, `lanes` to a row
// Lane l of a row holds channels (l + lanes * i) * kPack .. + kPack - 1, 16 bytes at a time, kept in registers between the
// sum and the product. Which lane adds what depends on K alone, so a row's bits do not depend on its address.
#include "kernels/l2norm/l2norm.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <bit>

#include "kernels/device/convert.cuh"
#include "kernels/device/math.cuh"
#include "kernels/device/row_norm.cuh"
#include "kernels/device/varlen.cuh"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::l2norm {
namespace {

constexpr int kThreads = 256;
constexpr std::int64_t kMaxBlocks = 1 << 20;

template <class Io>
inline constexpr int kPackOf = 16 / sizeof(Io);  // elements to a 16-byte load

struct Params {
  Args args;
  int lanes;  // to a row: the smallest power of two that covers K in one load each, at most 32
  bool wide;  // rows can be read and written in packs
};

// kPacks: the most loads a lane needs for a row. One where a row fits a warp's single load, so that registers do not
// limit how many rows are on their way at once.
template <class Io, int kPacks>
__global__ void __launch_bounds__(kThreads) kernel(const __grid_constant__ Params p) {
  constexpr int kPack = kPackOf<Io>;
  const Args& a = p.args;
  const int K = static_cast<int>(a.K), lane = static_cast<int>(threadIdx.x) % p.lanes;
  const int rows_per_block = kThreads / p.lanes, row_in_block = static_cast<int>(threadIdx.x) / p.lanes;
  const std::int64_t rows = active_rows(a.cu_seqlens, a.N, a.T) * a.H;

  // A warp stays together for its shuffles: the bound is the block's first row, and rows past the end have size 0.
  for (std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * rows_per_block; first < rows;
       first += static_cast<std::int64_t>(gridDim.x) * rows_per_block) {
    const std::int64_t row = first + row_in_block;
    const int size = row < rows ? K : 0;
    const Io* x = static_cast<const Io*>(a.x) + row * K;
    Io* y = static_cast<Io*>(a.y) + row * K;

    Pack<Io, kPack> packs[kPacks];
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (i * p.lanes * kPack >= K) break;
      packs[i] = load_pack<Io, kPack>(x, (lane + i * p.lanes) * kPack, size, p.wide);
    }
    const RowNorm norm = row_norm<Precise>([&](float down) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < kPacks; ++i) {
        if (i * p.lanes * kPack >= K) break;
#pragma unroll
        for (int c = 0; c < kPack; ++c) {
          const float scaled = to_f32(packs[i].at[c]) * down;
          sum = fmaf(scaled, scaled, sum);
        }
      }
      for (int mask = p.lanes / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
      return sum;
    });
#pragma unroll
    for (int i = 0; i < kPacks; ++i) {
      if (i * p.lanes * kPack >= K) break;
#pragma unroll
      for (int c = 0; c < kPack; ++c) packs[i].at[c] = from_f32<Io>(to_f32(packs[i].at[c]) * norm.down * norm.r);
      store_pack<Io, kPack>(y, (lane + i * p.lanes) * kPack, size, p.wide, packs[i]);
    }
  }
}

template <class Io>
void launch(const Args& args, cudaStream_t stream) {
  constexpr int kPack = kPackOf<Io>;
  const auto loads = static_cast<std::uint64_t>((args.K + kPack - 1) / kPack);
  const Params params{.args = args,
                      .lanes = static_cast<int>(std::min<std::uint64_t>(std::bit_ceil(loads), 32)),
                      .wide = args.K % kPack == 0 && runtime::aligned(args.x, 16) && runtime::aligned(args.y, 16)};
  const std::int64_t rows_per_block = kThreads / params.lanes;
  const std::int64_t blocks = (args.T * args.H + rows_per_block - 1) / rows_per_block;
  const auto kernel_of_size = args.K <= 32 * kPack ? kernel<Io, 1> : kernel<Io, kMaxK / (32 * kPack)>;
  runtime::launch("l2norm", kernel_of_size, std::min(blocks, kMaxBlocks), kThreads, 0, stream, params);
}

}  // namespace

void fwd(const Args& args, void* stream) {
  constexpr std::string_view kOp = "l2norm.fwd";
  runtime::require_size(kOp, "T", args.T, 0);
  runtime::require_size(kOp, "N", args.N, 0);
  runtime::require_size(kOp, "H", args.H, 1);
  if (const auto reason = unsupported(args)) fail(kOp, ": ", *reason);
  if (args.T == 0) return;
  runtime::require_pointer(kOp, "x", args.x, size_of(args.io));
  runtime::require_pointer(kOp, "y", args.y, size_of(args.io));
  runtime::require_aligned(kOp, "cu_seqlens", args.cu_seqlens, sizeof(std::int32_t));

  const auto on = static_cast<cudaStream_t>(stream);
  if (args.io == DType::f32) return launch<float>(args, on);
  if (args.io == DType::bf16) return launch<__nv_bfloat16>(args, on);
  launch<__half>(args, on);
}

}  // namespace deltagauge::kernels::l2norm
