// Row normalisation in the working type: y = x r, r = 1 / sqrt(sum x^2 + 1e-6), the eps on the sum; y rounded to io.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/rounding.h"

namespace deltagauge::reference {

inline constexpr double kL2Eps = 1e-6;

template <class Real>
Real sum_of_squares(std::int64_t K, const Real* x) {
  Real sum = 0;
  for (std::int64_t c = 0; c < K; ++c) sum += x[c] * x[c];
  return sum;
}

// 1 / sqrt(sum x^2 + 1e-6) of a row of K values, which stays as it is, but where the sum passes 2^126: then it is first
// multiplied by 2^-96.
template <class Real>
Real inverse_norm(std::int64_t K, Real* x) {
  const Real sum = sum_of_squares(K, x);
  if (!(sum > Real(0x1p126f))) return 1 / std::sqrt(sum + static_cast<Real>(kL2Eps));
  for (std::int64_t c = 0; c < K; ++c) x[c] *= Real(0x1p-96f);
  return 1 / std::sqrt(sum_of_squares(K, x));
}

// One row of K values in place, rounded to dtype (f64: not rounded). A sum of squares beyond the working type is taken of
// the row times a power of two: y is at most 1 there, so an overflow is no rounding that a kernel could plead.
template <class Real>
void normalise_row(std::int64_t K, Real* x, DType dtype, double eps = kL2Eps) {
  Real sum = sum_of_squares(K, x);
  if (std::isinf(sum)) {
    Real largest = 0;
    for (std::int64_t c = 0; c < K; ++c) largest = std::max(largest, std::abs(x[c]));
    const Real down = std::isinf(largest) ? Real(1) : std::ldexp(Real(1), -std::ilogb(largest));
    for (std::int64_t c = 0; c < K; ++c) x[c] *= down;
    sum = sum_of_squares(K, x);
    eps *= static_cast<double>(down) * static_cast<double>(down);
  }
  const Real r = 1 / std::sqrt(sum + static_cast<Real>(eps));
  for (std::int64_t c = 0; c < K; ++c) x[c] = round_value(dtype, x[c] * r);
}

// The op l2norm in f32: x [T, HK, K] -> y. Rows past the active end are NaN.
Tensors l2norm(const Problem& problem, const Tensors& inputs);

}  // namespace deltagauge::reference
