// In place of kernels/device/ptx/mma_m16n8k16.cuh, on the CPU.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <type_traits>

#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

template <class T>
inline constexpr host::Format kFormat = std::is_same_v<T, __half> ? host::Format::f16 : host::Format::bf16;

template <class T>
void mma_m16n8k16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  host::mma(kFormat<T>, d, a, b0, b1);
}

}  // namespace deltagauge::kernels::ptx
