// In place of CUDA's header of that name: f16 as it is stored. Conversions round to nearest even and give one NaN.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/half.h"
#include "kernels/host/shadow/vector_types.h"

struct __half {
  std::uint16_t bits;
};
struct alignas(4) __half2 {
  __half x, y;
};
inline float __half2float(__half x) { return static_cast<float>(deltagauge::to_f64(deltagauge::F16{x.bits})); }
inline __half __float2half_rn(float x) { return {std::isnan(x) ? std::uint16_t{0x7fff} : deltagauge::to_f16(x).bits}; }
inline __half2 __floats2half2_rn(float x, float y) { return {__float2half_rn(x), __float2half_rn(y)}; }
inline float2 __half22float2(__half2 x) { return {__half2float(x.x), __half2float(x.y)}; }
inline __half __ushort_as_half(unsigned short x) { return {x}; }
