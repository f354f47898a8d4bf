// The exponentials of the decays, as kernels have them.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "core/problem.h"
#include "reference/staging.h"

namespace deltagauge::reference {

// ex2.approx.f32: 2^y cut off after 23 of 24 bits, which is off by less than 2^-22. With ftz what is subnormal is 0.
inline float ex2_approx(float y, bool ftz) {
  const auto power = static_cast<float>(std::exp2(static_cast<double>(y)));
  if (!std::isnormal(power)) return ftz && std::isfinite(power) ? 0.0f : power;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(power) & ~1u);
}

// exp(x) as the kernel has it: correctly rounded; in fast f32 the rounded product x log2(e) goes through 2^y.
template <class Real>
Real decay(MathMode math, Real x, FastExp fast_exp = FastExp::exp2f) {
  if constexpr (std::is_same_v<Real, float>) {
    const float y = x * 0x1.715476p+0f;
    if (math == MathMode::fast && fast_exp != FastExp::exp2f) return ex2_approx(y, fast_exp == FastExp::ex2_ftz);
    if (math == MathMode::fast) return static_cast<float>(std::exp2(static_cast<double>(y)));
    return static_cast<float>(std::exp(static_cast<double>(x)));
  } else {
    return std::exp(x);
  }
}

}  // namespace deltagauge::reference
