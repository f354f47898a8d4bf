// Copy: 16 bytes a thread and step, grid-stride. Products: every warpgroup multiplies registers by one tile in shared memory
// again and again, 16 at a time.
// tensor_kernel: grid: SMs x kBlocksPerSm   block: kThreads   shared memory: one [128, 64] bf16 tile
#include "kernels/probe/roofline.h"

#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/device/ptx/mma_m16n8k16.cuh"
#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/runtime/buffer.h"
#include "kernels/runtime/device_info.h"
#include "kernels/runtime/event.h"
#include "kernels/runtime/launch.cuh"
#include "kernels/runtime/stream.h"

namespace deltagauge::kernels::probe {
namespace {

constexpr int kThreads = 128, kBlocksPerSm = 3, kSteps = 2048;
constexpr double kSeconds = 0.3;
constexpr double kFlopsPerStep = 2.0 * 64 * 128 * 64;  // a block's 64 x 128 x 64 product

__global__ void __launch_bounds__(512) copy_kernel(const uint4* from, uint4* to, std::int64_t count) {
  const std::int64_t stride = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (; i + 3 * stride < count; i += 4 * stride) {
    uint4 x[4];
#pragma unroll
    for (int u = 0; u < 4; ++u) x[u] = __ldcs(from + i + u * stride);
#pragma unroll
    for (int u = 0; u < 4; ++u) __stcs(to + i + u * stride, x[u]);
  }
  for (; i < count; i += stride) to[i] = from[i];
}

// A bf16 pair of values in [1, 2) with random low bits: multipliers see real operands.
__device__ std::uint32_t random_pair(std::uint32_t seed) {
  seed = seed * 2654435761u + 12345u;
  return 0x3f803f80u | ((seed >> 9) & 0x007f007fu) | (seed & 0x80008000u);
}

__global__ void __launch_bounds__(kThreads) tensor_kernel(float* sink) {
  __shared__ alignas(1024) std::uint32_t tile[128 * 32];
  for (int i = threadIdx.x; i < 128 * 32; i += kThreads) tile[i] = random_pair(i);
  std::uint32_t a[4][4];
#pragma unroll
  for (int i = 0; i < 16; ++i) a[i / 4][i % 4] = random_pair(1000 * threadIdx.x + i);
  float d[16][4] = {};
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the tile, before the tensor cores read it
  __syncthreads();
  const std::uint64_t b = ptx::wgmma_rows(static_cast<std::uint32_t>(__cvta_generic_to_shared(tile)));
  for (int step = 0; step < kSteps; ++step) {
    ptx::wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) ptx::wgmma_m64n128k16<__nv_bfloat16>(d, a[k], b + 2 * k);  // 32 bytes a step of k
    ptx::wgmma_commit();
    ptx::wgmma_wait<0>();
  }
#else
  __syncthreads();
  for (int step = 0; step < kSteps; ++step)
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      std::uint32_t b[2] = {tile[threadIdx.x + 128 * k], tile[threadIdx.x + 128 * k + 512]};
#pragma unroll
      for (int n = 0; n < 16; ++n) ptx::mma_m16n8k16<__nv_bfloat16>(d[n], a[k], b[0], b[1]);
    }
#endif
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 64; ++i) sum += d[i / 4][i % 4];
  sink[blockIdx.x * kThreads + threadIdx.x] = sum;
}

// The median over the second half of kSeconds of repetitions, when clocks have settled to what the power limit allows.
template <class Work>
double settled_seconds(const runtime::Stream& stream, const Work& work) {
  std::vector<double> times;
  for (double total = 0; total < kSeconds; total += times.back()) {
    runtime::Event start, end;
    start.record(stream.get());
    work();
    end.record(stream.get());
    end.sync();
    times.push_back(1e-3 * end.milliseconds_since(start));
  }
  const auto first = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2),
             middle = first + (times.end() - first) / 2;
  std::nth_element(first, middle, times.end());
  return *middle;
}

}  // namespace

Ceilings ceilings() {
  const auto& query = runtime::device_query();
  if (!query.device) fail("roofline: expected a GPU, got none: ", query.reason);
  const runtime::Stream stream;
  const auto cuda = static_cast<cudaStream_t>(stream.get());
  std::size_t free = 0, total = 0;
  runtime::check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  const std::size_t bytes = std::min<std::size_t>(std::size_t{1} << 30, free / 8) / 4096 * 4096;
  Ceilings out;
  {
    runtime::Buffer from(bytes), to(bytes);
    from.fill(0x5a, stream);
    const double by_kernel = settled_seconds(stream, [&] {
      runtime::launch("copy", copy_kernel, 4 * query.device->sm_count, 512, 0, cuda, from.as<const uint4>(), to.as<uint4>(),
                      static_cast<std::int64_t>(bytes / 16));
    });
    const double by_driver = settled_seconds(stream, [&] {
      runtime::check(cudaMemcpyAsync(to.as(), from.as(), bytes, cudaMemcpyDeviceToDevice, cuda), "cudaMemcpyAsync");
    });
    const double seconds = std::min(by_kernel, by_driver);
    out.copy_bytes_s = 2 * static_cast<double>(bytes) / seconds;
  }
  const int blocks = kBlocksPerSm * query.device->sm_count;
  runtime::Buffer sink(sizeof(float) * kThreads * static_cast<std::size_t>(blocks));
  const double seconds = settled_seconds(
      stream, [&] { runtime::launch("tensor", tensor_kernel, blocks, kThreads, 0, cuda, sink.as<float>()); });
  out.tensor_flops_s = kFlopsPerStep * kSteps * blocks / seconds;
  return out;
}

}  // namespace deltagauge::kernels::probe
