// The factor of a row's normalisation, x / sqrt(sum x^2 + 1e-6) in FP32, also where the sum of squares passes FP32.
#pragma once

namespace deltagauge::kernels {

// y = (x * down) * r. down is 1 but where the sum overflows; 2^-96 x has no such sum, and 1e-6 is below its last bit.
struct RowNorm {
  float down, r;
};

// sum(down): the row's sum of (down x)^2, the same on all its lanes. Whole warps call this, one row or several each.
template <class Math, class Sum>
__device__ RowNorm row_norm(const Sum& sum) {
  const float once = sum(1.0f);
  const bool over = isinf(once);
  if (!__any_sync(0xffffffffu, over)) return {1.0f, Math::inverse_sqrt(once + 1e-6f)};
  const float down = over ? 0x1p-96f : 1.0f, again = sum(down);
  return {down, Math::inverse_sqrt(over ? again : once + 1e-6f)};
}

}  // namespace deltagauge::kernels
