// f32 values as operands of mma_m16n8k8_tf32, kept in the registers in which another product left them.
// An accumulator [16, 8] becomes operand a as it is: its columns 2 t and 2 t + 1 stand for k = t and k = t + 4. Operand b
// then holds the elements (k, n) = (2 t, group) and (2 t + 1, group).
#pragma once
#include <cstdint>

#include "kernels/device/ptx/ldmatrix.cuh"
#include "kernels/device/ptx/mma_tf32.cuh"

namespace deltagauge::kernels {

// x to 10 fraction bits, nearest, ties away from zero, in the bits that the tensor core reads; it ignores the other 13.
// The largest NaNs are brought down first, so that they stay NaN. Two instructions; cvt.rna.tf32 is three.
__device__ inline std::uint32_t bits_tf32(float x) {
  return static_cast<std::uint32_t>(min(__float_as_int(x), 0x7fffefff)) + 0x1000u;
}
__device__ inline float round_tf32(float x) { return __uint_as_float(bits_tf32(x) & ~0x1fffu); }

// x as hi + lo, hi rounded to 11 bits and lo, as the tensor core reads it, cut to 11: 22 in all.
struct SplitTf32 {
  std::uint32_t hi, lo;
  SplitTf32() = default;
  explicit __device__ SplitTf32(float x) {
    hi = bits_tf32(x) & ~0x1fffu;
    lo = __float_as_uint(x - __uint_as_float(hi));
  }
};
// kSplit: as hi + lo; else rounded.
template <bool kSplit>
struct OperandTf32 {
  std::uint32_t hi[4], lo[4];
  explicit __device__ OperandTf32(const float (&x)[4]) {
    constexpr int kElement[4] = {0, 2, 1, 3};
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if constexpr (kSplit) {
        const SplitTf32 split(x[kElement[r]]);
        hi[r] = split.hi;
        lo[r] = split.lo;
      } else {
        hi[r] = bits_tf32(x[kElement[r]]);
      }
    }
  }
};

// d += a b. kSplit: hi hi + hi lo + lo hi; else b must have 11 bits already.
template <bool kSplit>
__device__ void multiply_add(float (&d)[4], const OperandTf32<kSplit>& a, float b0, float b1) {
  if constexpr (kSplit) {
    const SplitTf32 x(b0), y(b1);
    ptx::mma_m16n8k8_tf32(d, a.lo, {x.hi, y.hi});
    ptx::mma_m16n8k8_tf32(d, a.hi, {x.lo, y.lo});
    ptx::mma_m16n8k8_tf32(d, a.hi, {x.hi, y.hi});
  } else {
    ptx::mma_m16n8k8_tf32(d, a.hi, {__float_as_uint(b0), __float_as_uint(b1)});
  }
}

// The transpose of an 8 x 8 block whose lane holds row group, columns 2 t (x) and 2 t + 1 (y): the halves of the words
// travel as two matrices of 16-bit elements.
__device__ inline void transpose(float& x, float& y) {
  const std::uint32_t a = __float_as_uint(x), b = __float_as_uint(y);
  const std::uint32_t low = ptx::movmatrix_trans(__byte_perm(a, b, 0x5410));
  const std::uint32_t high = ptx::movmatrix_trans(__byte_perm(a, b, 0x7632));
  x = __uint_as_float(__byte_perm(low, high, 0x5410));
  y = __uint_as_float(__byte_perm(low, high, 0x7632));
}

}  // namespace deltagauge::kernels
