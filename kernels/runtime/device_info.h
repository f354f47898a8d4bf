// What the current device is. Works without a driver or a GPU: then the answer is the reason.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

namespace deltagauge::kernels::runtime {

struct DeviceInfo {
  std::string name;
  int sm = 0;  // 90 for compute capability 9.0
  int sm_count = 0;
  int driver = 0, runtime = 0;        // 13000 for CUDA 13.0
  int clock_mhz = 0, memory_mhz = 0;  // highest rates
  std::int64_t l2_bytes = 0, memory_bytes = 0;
};

struct DeviceQuery {
  std::optional<DeviceInfo> device;
  std::string reason;  // why there is none; empty when there is one
};
const DeviceQuery& device_query();  // asked once a process

int device_count();           // GPUs that this process sees; 0 where there is no driver
void use_device(int device);  // by the calling thread, from here on; throws Error when there is no such device

}  // namespace deltagauge::kernels::runtime
