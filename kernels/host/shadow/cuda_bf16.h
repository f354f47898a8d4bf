// In place of CUDA's header of that name: bf16 as it is stored. Conversions round to nearest even and give one NaN.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "core/half.h"
#include "kernels/host/shadow/vector_types.h"

struct __nv_bfloat16 {
  std::uint16_t bits;
};
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
};
inline float __bfloat162float(__nv_bfloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  if (std::isnan(x)) return {0x7fff};
  return {static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(deltagauge::round_bf16(x)) >> 16)};
}
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {__float2bfloat16_rn(x), __float2bfloat16_rn(y)}; }
inline std::uint16_t __bfloat16_as_ushort(__nv_bfloat16 x) { return x.bits; }
