// Kernel launches with their status checked. grid counts blocks along x, the only axis that is not cut at 65,535.
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/error.h"
#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {

// Asks for the right to use more than 48 KiB of dynamic shared memory where it is needed. what names the kernel in messages.
template <class... Params>
void allow_shared(const char* what, void (*kernel)(Params...), std::size_t shared_bytes) {
  if (shared_bytes > 48 * 1024)
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)), what);
}

// Blocks of the kernel that the current device holds at once; at least 1.
template <class... Params>
std::int64_t resident_blocks(const char* what, void (*kernel)(Params...), int threads, std::size_t shared_bytes) {
  int device = 0, sms = 0, of_each = 0;
  check(cudaGetDevice(&device), what);
  check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), what);
  allow_shared(what, kernel, shared_bytes);
  check(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&of_each, kernel, threads, shared_bytes), what);
  return of_each > 0 ? static_cast<std::int64_t>(sms) * of_each : 1;
}

// Enqueues kernel(args...) on stream; nothing when there are no blocks. Throws Error when the launch is refused.
template <class... Params, class... Args>
void launch(const char* what, void (*kernel)(Params...), std::int64_t blocks, int threads, std::size_t shared_bytes,
            cudaStream_t stream, const Args&... args) {
  if (blocks == 0) return;
  if (blocks < 0 || blocks > std::numeric_limits<std::int32_t>::max())
    fail(what, ": expected at most ", std::numeric_limits<std::int32_t>::max(), " blocks, got ", blocks);
  allow_shared(what, kernel, shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, Params(args)...), what);
}

}  // namespace deltagauge::kernels::runtime
