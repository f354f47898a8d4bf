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

// The launch of a kernel, its right to shared memory asked for. Throws Error when there are too many blocks.
template <class... Params>
cudaLaunchConfig_t configure(const char* what, void (*kernel)(Params...), std::int64_t blocks, int threads,
                             std::size_t shared_bytes, cudaStream_t stream) {
  if (blocks < 0 || blocks > std::numeric_limits<std::int32_t>::max())
    fail(what, ": expected at most ", std::numeric_limits<std::int32_t>::max(), " blocks, got ", blocks);
  allow_shared(what, kernel, shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(static_cast<unsigned>(blocks));
  config.blockDim = dim3(static_cast<unsigned>(threads));
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  return config;
}

// Enqueues kernel(args...) on stream; nothing when there are no blocks. Throws Error when the launch is refused.
template <class... Params, class... Args>
void launch(const char* what, void (*kernel)(Params...), std::int64_t blocks, int threads, std::size_t shared_bytes,
            cudaStream_t stream, const Args&... args) {
  if (blocks == 0) return;
  const cudaLaunchConfig_t config = configure(what, kernel, blocks, threads, shared_bytes, stream);
  check(cudaLaunchKernelEx(&config, kernel, Params(args)...), what);
}

// The same for a kernel whose every thread begins with ptx::wait_for_dependency(): its blocks may start while the kernel
// ahead of it ends (programmatic dependent launch), eagerly and in a captured graph. Where the code on the device has been
// compiled for less than sm_90 the wait is empty, so the launch is the plain one. That is asked of the kernel, as a device
// can run code compiled for an earlier one.
template <auto kKernel, class... Args>
void launch_dependent(const char* what, std::int64_t blocks, int threads, std::size_t shared_bytes, cudaStream_t stream,
                      const Args&... args) {
  if (blocks == 0) return;
  thread_local int asked = -1;  // the device of the answer
  thread_local bool waits = false;
  int device = 0;
  check(cudaGetDevice(&device), what);
  if (device != asked) {
    cudaFuncAttributes found{};
    check(cudaFuncGetAttributes(&found, kKernel), what);
    waits = found.ptxVersion >= 90, asked = device;
  }
  cudaLaunchConfig_t config = configure(what, kKernel, blocks, threads, shared_bytes, stream);
  cudaLaunchAttribute early{};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &early, config.numAttrs = waits ? 1 : 0;
  check(cudaLaunchKernelEx(&config, kKernel, args...), what);
}

}  // namespace deltagauge::kernels::runtime
