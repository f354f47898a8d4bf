#include "kernels/runtime/device_info.h"

#include <cuda_runtime_api.h>

#include <utility>

#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {
namespace {

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, device), "cudaDeviceGetAttribute");
  return value;
}

// Status and count; none is cudaErrorNoDevice.
std::pair<cudaError_t, int> count_devices() {
  int count = 0;
  const cudaError_t status = cudaGetDeviceCount(&count);
  if (status == cudaSuccess && count > 0) return {status, count};
  cudaGetLastError();  // clears it, so that no later call reports it
  return {status == cudaSuccess ? cudaErrorNoDevice : status, 0};
}

DeviceQuery ask() {
  if (const auto [status, count] = count_devices(); count == 0) return {std::nullopt, describe(status)};
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  DeviceInfo info{.name = properties.name,
                  .sm = 10 * properties.major + properties.minor,
                  .sm_count = properties.multiProcessorCount,
                  .clock_mhz = attribute(cudaDevAttrClockRate, device) / 1000,
                  .memory_mhz = attribute(cudaDevAttrMemoryClockRate, device) / 1000,
                  .l2_bytes = properties.l2CacheSize,
                  .memory_bytes = static_cast<std::int64_t>(properties.totalGlobalMem)};
  check(cudaDriverGetVersion(&info.driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&info.runtime), "cudaRuntimeGetVersion");
  return {info, {}};
}

}  // namespace

const DeviceQuery& device_query() {
  static const DeviceQuery query = ask();
  return query;
}

int device_count() { return count_devices().second; }

void use_device(int device) { check(cudaSetDevice(device), "cudaSetDevice"); }

}  // namespace deltagauge::kernels::runtime
