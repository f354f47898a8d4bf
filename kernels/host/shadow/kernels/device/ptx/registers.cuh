// In place of kernels/device/ptx/registers.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

inline int lane_id() { return static_cast<int>(host::lane()); }
inline int thread_id() { return static_cast<int>(host::thread_index()); }
inline int block_id() { return static_cast<int>(blockIdx.x); }

}  // namespace deltagauge::kernels::ptx
