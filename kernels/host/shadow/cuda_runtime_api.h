// In place of CUDA's header of that name: what launch code asks of the runtime. The device is one of compute capability 9.0
// with as many multiprocessors as the options say.
#pragma once
#include <cstddef>
#include <cstring>
#include <tuple>
#include <utility>

#include "kernels/host/executor.h"
#include "kernels/host/shadow/vector_types.h"

using cudaStream_t = struct CUstream_st*;

enum cudaError_t : int { cudaSuccess = 0, cudaErrorInvalidValue = 1, cudaErrorInvalidConfiguration = 9 };
inline const char* cudaGetErrorName(cudaError_t e) {
  return e == cudaSuccess             ? "cudaSuccess"
         : e == cudaErrorInvalidValue ? "cudaErrorInvalidValue"
                                      : "cudaErrorInvalidConfiguration";
}
inline const char* cudaGetErrorString(cudaError_t e) {
  return e == cudaSuccess ? "no error" : e == cudaErrorInvalidValue ? "invalid argument" : "invalid configuration argument";
}

enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount,
  cudaDevAttrComputeCapabilityMajor,
  cudaDevAttrComputeCapabilityMinor,
  cudaDevAttrMaxSharedMemoryPerBlockOptin
};
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int /*device*/) {
  namespace host = deltagauge::host;
  const int values[] = {host::options().sms, 9, 0, static_cast<int>(host::kSharedOfBlock)};
  return *value = values[attribute], cudaSuccess;
}

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize };
struct cudaFuncAttributes {
  int ptxVersion;
};
template <class Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel) {
  return attributes->ptxVersion = 90, cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute, int value) {
  return static_cast<std::size_t>(value) <= deltagauge::host::kSharedOfBlock ? cudaSuccess : cudaErrorInvalidValue;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int threads, std::size_t shared_bytes) {
  return *blocks = deltagauge::host::blocks_of_sm(threads, shared_bytes), cudaSuccess;
}

inline cudaError_t cudaMemsetAsync(void* to, int byte, std::size_t bytes, cudaStream_t) {
  deltagauge::host::then([=] { std::memset(to, byte, bytes); });
  return cudaSuccess;
}

enum cudaLaunchAttributeID { cudaLaunchAttributeProgrammaticStreamSerialization };
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  struct {
    int programmaticStreamSerializationAllowed;
  } val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned numAttrs;
};
template <class... Params, class... Args>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Params...), const Args&... args) {
  namespace host = deltagauge::host;
  if (config->blockDim.x > host::kThreadsOfBlock || config->dynamicSmemBytes > host::kSharedOfBlock)
    return cudaErrorInvalidConfiguration;
  bool early = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) early |= config->attrs[i].val.programmaticStreamSerializationAllowed != 0;
  host::launch({.body = [kernel, held = std::tuple<Params...>(args...)] { std::apply(kernel, held); },
                .blocks = config->gridDim.x,
                .threads = config->blockDim.x,
                .shared_bytes = config->dynamicSmemBytes,
                .early = early});
  return cudaSuccess;
}
