#include "kernels/runtime/nvml.h"

#include <cuda_runtime_api.h>
#include <dlfcn.h>

namespace deltagauge::kernels::runtime {
namespace {

// The few parts of NVML's C interface in use (NVML API reference, "Device queries"); all return 0 on success.
using Device = void*;
constexpr unsigned kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;

struct Reason {
  unsigned long long bit;
  const char* name;
};
constexpr Reason kReasons[] = {  // NVML API reference, "NvmlClocksEventReasons"
    {0x002, "applications_clocks_setting"},
    {0x004, "sw_power_cap"},
    {0x008, "hw_slowdown"},
    {0x010, "sync_boost"},
    {0x020, "sw_thermal_slowdown"},
    {0x040, "hw_thermal_slowdown"},
    {0x080, "hw_power_brake_slowdown"},
    {0x100, "display_clock_setting"}};

template <class F>
F* symbol(void* library, const char* name) {
  return library ? reinterpret_cast<F*>(::dlsym(library, name)) : nullptr;
}

class Nvml {
 public:
  Nvml() {
    library_ = ::dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
    const auto init = symbol<int()>(library_, "nvmlInit_v2");
    const auto handle = symbol<int(const char*, Device*)>(library_, "nvmlDeviceGetHandleByPciBusId_v2");
    char bus[32] = {};
    int device = 0;
    if (!init || !handle || init() != 0 || cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetPCIBusId(bus, sizeof bus, device) != cudaSuccess || handle(bus, &device_) != 0)
      device_ = nullptr;
  }

  // The answer of an NVML call that fills its last argument, or nothing.
  template <class Value, class... Args>
  std::optional<Value> ask(const char* name, Args... args) const {
    const auto call = symbol<int(Device, Args..., Value*)>(library_, name);
    Value value{};
    if (!device_ || !call || call(device_, args..., &value) != 0) return std::nullopt;
    return value;
  }

 private:
  void* library_ = nullptr;  // kept open: unloading NVML while the driver is in use gains nothing
  Device device_ = nullptr;
};

}  // namespace

DeviceState device_state() {
  static const Nvml nvml;
  DeviceState state;
  const auto count = [&](auto... question) -> std::optional<int> {
    const auto value = nvml.ask<unsigned>(question...);
    return value ? std::optional<int>(static_cast<int>(*value)) : std::nullopt;
  };
  state.sm_mhz = count("nvmlDeviceGetClockInfo", kClockSm);
  state.memory_mhz = count("nvmlDeviceGetClockInfo", kClockMemory);
  state.temperature_c = count("nvmlDeviceGetTemperature", kTemperatureGpu);
  if (const auto milliwatts = nvml.ask<unsigned>("nvmlDeviceGetPowerUsage")) state.power_w = 1e-3 * *milliwatts;
  if (const auto bits = nvml.ask<unsigned long long>("nvmlDeviceGetCurrentClocksThrottleReasons"))
    for (const Reason& reason : kReasons)
      if (*bits & reason.bit) state.throttle.emplace_back(reason.name);
  return state;
}

}  // namespace deltagauge::kernels::runtime
