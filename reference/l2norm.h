// Row normalisation in the working type: y = x r, r = 1 / sqrt(sum x^2 + 1e-6), the eps on the sum; y rounded to io.
#pragma once
#include <cmath>
#include <cstdint>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/rounding.h"

namespace deltagauge::reference {

inline constexpr double kL2Eps = 1e-6;

// One row of K values in place, rounded to dtype (f64: not rounded).
template <class Real>
void normalise_row(std::int64_t K, Real* x, DType dtype, double eps = kL2Eps) {
  Real sum = 0;
  for (std::int64_t c = 0; c < K; ++c) sum += x[c] * x[c];
  const Real r = 1 / std::sqrt(sum + static_cast<Real>(eps));
  for (std::int64_t c = 0; c < K; ++c) x[c] = round_value(dtype, x[c] * r);
}

// The op l2norm in f32: x [T, HK, K] -> y. Rows past the active end are NaN.
Tensors l2norm(const Problem& problem, const Tensors& inputs);

}  // namespace deltagauge::reference
