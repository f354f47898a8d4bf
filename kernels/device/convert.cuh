// Element types in memory and FP32 in registers: conversions, and rows read and written a few consecutive channels at a
// time. Storage types are float, __half and __nv_bfloat16.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "core/dtype.h"

namespace deltagauge::kernels {

__device__ inline float to_f32(float x) { return x; }
__device__ inline float to_f32(__half x) { return __half2float(x); }
__device__ inline float to_f32(__nv_bfloat16 x) { return __bfloat162float(x); }

// Nearest, ties to even; beyond the largest finite value: infinity.
template <class T>
__device__ T from_f32(float x);
template <>
__device__ inline float from_f32<float>(float x) {
  return x;
}
template <>
__device__ inline __half from_f32<__half>(float x) {
  return __float2half_rn(x);
}
template <>
__device__ inline __nv_bfloat16 from_f32<__nv_bfloat16>(float x) {
  return __float2bfloat16_rn(x);
}

// kCount consecutive elements as they stand in memory: one aligned load of up to 16 bytes, or two.
template <class T, int kCount>
struct alignas(sizeof(T) * kCount < 16 ? sizeof(T) * kCount : 16) Pack {
  T at[kCount];
};

// Elements first .. first + kCount - 1 of a row of size elements; those at and past size are zero and not read. wide: the
// row starts at a multiple of alignof(Pack) and size is a multiple of kCount.
template <class T, int kCount>
__device__ Pack<T, kCount> load_pack(const T* row, int first, int size, bool wide) {
  Pack<T, kCount> pack;
  if (wide && first < size) {
    pack = *reinterpret_cast<const Pack<T, kCount>*>(row + first);
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i) pack.at[i] = first + i < size ? row[first + i] : from_f32<T>(0.0f);
  }
  return pack;
}

template <class T, int kCount>
__device__ void store_pack(T* row, int first, int size, bool wide, const Pack<T, kCount>& pack) {
  if (wide && first < size) {
    *reinterpret_cast<Pack<T, kCount>*>(row + first) = pack;
  } else {
#pragma unroll
    for (int i = 0; i < kCount; ++i)
      if (first + i < size) row[first + i] = pack.at[i];
  }
}

// One scalar whose type is known at run time only. The bits are loaded first and converted later, so that a prefetch does
// not wait for its own load.
__device__ inline std::uint32_t load_bits(const void* data, DType dtype, std::int64_t index) {
  return dtype == DType::f32 ? static_cast<const std::uint32_t*>(data)[index]
                             : static_cast<const std::uint16_t*>(data)[index];
}
__device__ inline float bits_to_f32(std::uint32_t bits, DType dtype) {
  if (dtype == DType::f32) return __uint_as_float(bits);
  if (dtype == DType::bf16) return __uint_as_float(bits << 16);
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
}

}  // namespace deltagauge::kernels
