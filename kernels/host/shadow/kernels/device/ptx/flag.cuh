// In place of kernels/device/ptx/flag.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

inline void release(std::uint32_t* flag) { host::release(flag); }
inline void acquire(const std::uint32_t* flag) { host::acquire(flag); }

}  // namespace deltagauge::kernels::ptx
