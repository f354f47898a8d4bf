// Elementary functions from + - * / and sqrt alone, so that inputs have the same bits on every machine whatever its libm.
// Relative error below 2^-50, which is enough to draw inputs; nothing is judged with these.
#pragma once
#include <cmath>
#include <limits>

namespace deltagauge::portable {

inline double exp(double x) {
  if (x != x) return x;
  if (x > 709.7) return std::numeric_limits<double>::infinity();
  if (x < -745.2) return 0;
  constexpr double kLn2High = 0x1.62e42fefa0000p-1, kLn2Low = 0x1.cf79abc9e3b39p-40;
  const double n = std::floor(x * 0x1.71547652b82fep0 + 0.5);
  const double r = (x - n * kLn2High) - n * kLn2Low;  // |r| <= 0.35
  double sum = 1;
  for (int i = 17; i >= 1; --i) sum = 1 + sum * r / i;
  return std::ldexp(sum, static_cast<int>(n));
}

// 2 atanh(z) = log((1 + z) / (1 - z)), |z| <= 0.2.
inline double two_atanh(double z) {
  const double z2 = z * z;
  double sum = 0;
  for (int i = 41; i >= 1; i -= 2) sum = sum * z2 + 1.0 / i;
  return 2 * z * sum;
}
inline double log(double x) {  // finite x > 0
  int exponent = 0;
  double m = std::frexp(x, &exponent);  // [0.5, 1)
  if (m < 0x1.6a09e667f3bcdp-1) {
    m *= 2;
    --exponent;
  }
  return exponent * 0x1.62e42fefa39efp-1 + two_atanh((m - 1) / (m + 1));
}
inline double log1p(double y) {  // y > -1
  return y > -0.25 && y < 0.5 ? two_atanh(y / (2 + y)) : portable::log(1 + y);
}

inline double sigmoid(double x) { return x >= 0 ? 1 / (1 + portable::exp(-x)) : portable::exp(x) / (1 + portable::exp(x)); }
inline double softplus(double x) { return (x > 0 ? x : 0) + portable::log1p(portable::exp(-std::fabs(x))); }

// cos(2 pi u) for u in [0, 1).
inline double cos_turn(double u) {
  double r = u - std::floor(u + 0.5);  // [-1/2, 1/2)
  r = std::fabs(r);
  const bool flip = r > 0.25;
  if (flip) r = 0.5 - r;
  const double x = 0x1.921fb54442d18p2 * r, x2 = x * x;  // |x| <= pi/2
  double sum = 1;
  for (int i = 24; i >= 2; i -= 2) sum = 1 - sum * x2 / (i * (i - 1));
  return flip ? -sum : sum;
}

}  // namespace deltagauge::portable
