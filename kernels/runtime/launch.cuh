// Kernel launches with their status checked. grid counts blocks along x, the only axis that is not cut at 65,535.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/error.h"
#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {

// Enqueues kernel(args...) on stream; nothing when there are no blocks. Throws Error when the launch is refused. Asks for
// the right to use more than 48 KiB of dynamic shared memory where it is needed. what names the kernel in messages.
template <class... Params, class... Args>
void launch(const char* what, void (*kernel)(Params...), std::int64_t blocks, int threads, std::size_t shared_bytes,
            cudaStream_t stream, const Args&... args) {
  if (blocks == 0) return;
  if (blocks < 0 || blocks > std::numeric_limits<std::int32_t>::max())
    fail(what, ": expected at most ", std::numeric_limits<std::int32_t>::max(), " blocks, got ", blocks);
  if (shared_bytes > 48 * 1024)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)), what);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, Params(args)...), what);
}

}  // namespace deltagauge::kernels::runtime
