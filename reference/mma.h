// The tensor core's sum of products, bit for bit (docs/numerics.md#tensor-core). One step takes a group of products and the
// accumulator c. Each term is an integer significand times a power of two; all are aligned to the largest exponent among
// the non-zero terms, truncated to a grid of fraction_bits below it, summed exactly, and the sum is rounded towards zero
// to f32. A k-long dot product is a chain of such steps.
//   product exponent: e(a) + e(b), the significand in [1, 4), not normalised; subnormals keep their format's exponent
//   overflow gives infinity, any NaN or inf - inf the NaN 0x7fffffff, an exact zero sum +0
#pragma once
#include <cstdint>
#include <string_view>

namespace deltagauge::reference {

struct MmaModel {
  std::string_view name;
  int group;                 // products a step, at most 16: the grid sum then fits 32 bits
  int fraction_bits;         // the grid is 2^(largest exponent - fraction_bits), at most 25
  int operand_min_exponent;  // smallest normal exponent of the operands' format
  int min_exponent;          // the alignment exponent is at least this
};

// Hopper, Blackwell: mma.sync m16n8k16 (tf32: m16n8k8), wgmma.
inline constexpr MmaModel kHopperBf16{"hopper.bf16", 16, 25, -126, -133};
inline constexpr MmaModel kHopperF16{"hopper.f16", 16, 25, -14, -133};
inline constexpr MmaModel kHopperTf32{"hopper.tf32", 8, 25, -126, -133};
// Ampere, Ada: half the group, one bit fewer.
inline constexpr MmaModel kAmpereBf16{"ampere.bf16", 8, 24, -126, -132};
inline constexpr MmaModel kAmpereF16{"ampere.f16", 8, 24, -14, -132};
inline constexpr MmaModel kAmpereTf32{"ampere.tf32", 4, 24, -126, -132};

// c + sum over k of a[i] b[i]. a and b hold values of the operands' format (tf32: low 13 bits zero).
float mma_dot(const MmaModel& model, const float* a, const float* b, std::int64_t k, float c);

// c[m, n] += a[m, k] b[k, n], all row-major and contiguous: every element equal to mma_dot of its row and column, bit for
// bit, some 50 times faster.
void mma_matmul(const MmaModel& model, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
                float* c);

}  // namespace deltagauge::reference
