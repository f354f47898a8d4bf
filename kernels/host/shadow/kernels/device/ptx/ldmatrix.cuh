// In place of kernels/device/ptx/ldmatrix.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

inline void ldmatrix_x4(std::uint32_t (&d)[4], std::uint32_t address) { host::ldmatrix_x4(d, address, false); }
inline void ldmatrix_x4_trans(std::uint32_t (&d)[4], std::uint32_t address) { host::ldmatrix_x4(d, address, true); }
inline void stmatrix_x4_trans(std::uint32_t address, const std::uint32_t (&d)[4]) { host::stmatrix_x4_trans(address, d); }
inline std::uint32_t movmatrix_trans(std::uint32_t a) { return host::movmatrix_trans(a); }

}  // namespace deltagauge::kernels::ptx
