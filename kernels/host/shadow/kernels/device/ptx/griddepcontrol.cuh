// In place of kernels/device/ptx/griddepcontrol.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

inline void wait_for_dependency() { host::wait_for_dependency(); }
inline void launch_dependents() { host::launch_dependents(); }

}  // namespace deltagauge::kernels::ptx
