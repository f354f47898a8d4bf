// Decays between rows of a chunk in f64, and by a factored exponential (GateSplit): exp(b_i - b_r) exp(b_r - b_j).
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/gdn_data.h"
#include "reference/rounding.h"
#include "reference/taps.h"

namespace deltagauge::reference {

// exp(x) for range statistics: finite and not 0 for any finite x, so that a store that loses it can be told.
inline double decay_before_store(double x) {
  return std::isfinite(x) ? std::exp(std::clamp(x, -700.0, 700.0)) : std::exp(x);
}

// exp(x) as one stored factor: significand 2^exponent, the significand in [1, 2] or, where the format has an end, all of it.
struct GateFactor {
  double significand, exponent;

  GateFactor(const GateSplit& split, double x) {
    const DType format = store_format(split.factor, DType::f32);
    if (!split.endless || !std::isfinite(x)) {
      significand = round_to(format, std::exp(x));
      exponent = 0;
      return;
    }
    const double log2 = x * 0x1.71547652b82fep+0;
    exponent = std::floor(log2);
    significand = round_to(format, std::exp2(log2 - exponent));
  }
};

// [n, n] exp(b_i - b_j) for j <= i, above the diagonal 0; b: sums of g up to and including each row.
template <class Real>
Matrix<Real> split_decays(const GateSplit& split, const std::vector<double>& b, Ranges* ranges) {
  const auto n = static_cast<Index>(b.size());
  const auto at = [&](Index i) { return b[static_cast<std::size_t>(i)]; };
  const auto add = [&](std::string_view name, double x, const GateFactor& factor) {
    if (!ranges || split.endless) return;
    const double before = decay_before_store(x);
    record(*ranges, name, store_format(split.factor, DType::f32), std::span(&before, 1), std::span(&factor.significand, 1));
  };
  Matrix<Real> between = Matrix<Real>::Zero(n, n);
  for (Index first = 0; first < n; first += split.rows) {
    const Index end = std::min<Index>(n, first + split.rows);
    const Index row = split.anchor == Anchor::middle ? std::min<Index>(n - 1, first + split.rows / 2)
                                                     : first - (split.anchor == Anchor::before ? 1 : 0);
    const double anchor = row < 0 ? 0 : at(row);
    std::vector<GateFactor> columns;
    for (Index j = 0; j < end; ++j) {
      columns.emplace_back(split, anchor - at(j));
      add("decay_j", anchor - at(j), columns.back());
    }
    for (Index i = first; i < end; ++i) {
      const GateFactor left(split, at(i) - anchor);
      add("decay_i", at(i) - anchor, left);
      for (Index j = 0; j <= i; ++j) {
        const GateFactor& right = columns[static_cast<std::size_t>(j)];
        const double product = left.significand * right.significand, up = left.exponent + right.exponent;
        between(i, j) = static_cast<Real>(std::ldexp(product, static_cast<int>(std::clamp(up, -2000.0, 2000.0))));
      }
    }
  }
  return between;
}

}  // namespace deltagauge::reference
