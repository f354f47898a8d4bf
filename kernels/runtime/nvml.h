// What the current device is doing, from the driver's management library (NVML), which is loaded when first asked. Where it
// is missing or refuses a question, that answer is absent; nothing here throws.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace deltagauge::kernels::runtime {

struct DeviceState {
  std::optional<int> sm_mhz, memory_mhz, temperature_c;
  std::optional<double> power_w;
  // Why the clocks are held below their highest, as NVML names the reasons ("sw_power_cap"); idle clocks are not counted.
  std::vector<std::string> throttle;
};
DeviceState device_state();

}  // namespace deltagauge::kernels::runtime
