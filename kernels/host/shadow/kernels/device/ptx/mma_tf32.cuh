// In place of kernels/device/ptx/mma_tf32.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

inline void mma_m16n8k8_tf32(float (&d)[4], const std::uint32_t (&a)[4], const std::uint32_t (&b)[2]) {
  host::mma(host::Format::tf32, d, a, b[0], b[1]);
}

}  // namespace deltagauge::kernels::ptx
