// In place of kernels/device/ptx/global_16.cuh, on the CPU.
#pragma once
#include <vector_types.h>

namespace deltagauge::kernels::ptx {

inline uint4 load_global_16(const void* from) { return *static_cast<const uint4*>(from); }
inline void store_global_16(void* to, uint4 x) { *static_cast<uint4*>(to) = x; }

}  // namespace deltagauge::kernels::ptx
