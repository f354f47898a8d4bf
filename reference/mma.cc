#include "reference/mma.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

namespace deltagauge::reference {
namespace {

// Compiled for the vectors of newer CPUs, too; the values are the same, since nothing here contracts or reorders.
#ifdef __x86_64__
#define DELTAGAUGE_CLONES [[gnu::target_clones("default", "avx2", "avx512f")]]
#else
#define DELTAGAUGE_CLONES
#endif

constexpr int kZeroExponent = -1000;  // of a zero operand: never the largest, even beside 2^127
constexpr int kLanes = 64;            // columns worked on together

int exponent_of(float x, int min_exponent) {
  const auto bits = std::bit_cast<std::uint32_t>(x) & 0x7fffffffu;
  if (bits == 0) return kZeroExponent;
  return std::max(static_cast<int>(bits >> 23) - 127, min_exponent);
}
double power_of_two(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52); }

// Towards zero to f32, but infinity from 2^128 on.
inline float round_toward_zero(double x) {
  const auto nearest = static_cast<float>(x);
  const bool away = std::fabs(static_cast<double>(nearest)) > std::fabs(x) && std::fabs(x) < 0x1p128;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(nearest) - (away ? 1u : 0u)) + 0.0f;  // -0 to +0
}

float step(const MmaModel& model, const float* a, const float* b, std::int64_t k, float c) {
  double plain = c;
  int exponent = std::max(model.min_exponent, exponent_of(c, -126));
  for (std::int64_t i = 0; i < k; ++i) {
    plain += static_cast<double>(a[i]) * b[i];
    exponent =
        std::max(exponent, exponent_of(a[i], model.operand_min_exponent) + exponent_of(b[i], model.operand_min_exponent));
  }
  if (std::isnan(plain)) return std::bit_cast<float>(0x7fffffffu);
  if (std::isinf(plain)) return static_cast<float>(plain);
  const double scale = power_of_two(model.fraction_bits - exponent);
  std::int64_t sum = static_cast<std::int64_t>(c * scale);
  for (std::int64_t i = 0; i < k; ++i) sum += static_cast<std::int64_t>(static_cast<double>(a[i]) * b[i] * scale);
  return round_toward_zero(static_cast<double>(sum) * power_of_two(exponent - model.fraction_bits));
}

bool all_finite(const float* x, std::int64_t count) {
  bool finite = true;
  for (std::int64_t i = 0; i < count; ++i) finite &= std::fabs(x[i]) <= std::numeric_limits<float>::max();
  return finite;
}

// One row of a against kLanes columns; b and b_exponent are [k, kLanes]. Returns false when c leaves the finite range.
DELTAGAUGE_CLONES
bool row_of_lanes(const MmaModel& model, std::int64_t k, const double* a, const std::int32_t* a_exponent, const double* b,
                  const std::int32_t* b_exponent, float* c) {
  std::int32_t largest[kLanes], sum[kLanes];
  double scale[kLanes];
  for (std::int64_t first = 0; first < k; first += model.group) {
    const std::int64_t last = std::min(k, first + model.group);
    for (int l = 0; l < kLanes; ++l) {
      const auto bits = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(c[l]) & 0x7fffffffu);
      const std::int32_t e = std::max((bits >> 23) - 127, -126);
      largest[l] = std::max(bits == 0 ? kZeroExponent : e, model.min_exponent);
    }
    for (std::int64_t t = first; t < last; ++t)
      for (int l = 0; l < kLanes; ++l) largest[l] = std::max(largest[l], a_exponent[t] + b_exponent[t * kLanes + l]);
    for (int l = 0; l < kLanes; ++l) scale[l] = power_of_two(model.fraction_bits - largest[l]);
    for (int l = 0; l < kLanes; ++l) sum[l] = 0;
    for (std::int64_t t = first; t < last; ++t)  // |product| < 4, so 16 of them stay below 2^31 on the grid
      for (int l = 0; l < kLanes; ++l) sum[l] += static_cast<std::int32_t>(a[t] * b[t * kLanes + l] * scale[l]);
    bool finite = true;
    for (int l = 0; l < kLanes; ++l) {
      const double total = static_cast<double>(sum[l]) + static_cast<std::int32_t>(c[l] * scale[l]);
      c[l] = round_toward_zero(total * power_of_two(largest[l] - model.fraction_bits));
      finite &= std::fabs(c[l]) <= std::numeric_limits<float>::max();
    }
    if (!finite) return false;
  }
  return true;
}

}  // namespace

float mma_dot(const MmaModel& model, const float* a, const float* b, std::int64_t k, float c) {
  for (std::int64_t first = 0; first < k; first += model.group)
    c = step(model, a + first, b + first, std::min<std::int64_t>(model.group, k - first), c);
  return c;
}

void mma_matmul(const MmaModel& model, std::int64_t m, std::int64_t n, std::int64_t k, const float* a, const float* b,
                float* c) {
  const bool finite = all_finite(a, m * k) && all_finite(b, k * n) && all_finite(c, m * n);
  std::vector<double> a_value(a, a + m * k), b_value(static_cast<std::size_t>(k * kLanes));
  std::vector<std::int32_t> a_exponent(a_value.size()), b_exponent(b_value.size());
  for (std::size_t i = 0; i < a_value.size(); ++i) a_exponent[i] = exponent_of(a[i], model.operand_min_exponent);
  for (std::int64_t column = 0; column < n; column += kLanes) {
    const std::int64_t width = std::min<std::int64_t>(kLanes, n - column);
    std::fill(b_value.begin(), b_value.end(), 0.0);
    std::fill(b_exponent.begin(), b_exponent.end(), kZeroExponent);
    for (std::int64_t t = 0; t < k; ++t)
      for (std::int64_t l = 0; l < width; ++l) {
        const float x = b[t * n + column + l];
        b_value[static_cast<std::size_t>(t * kLanes + l)] = x;
        b_exponent[static_cast<std::size_t>(t * kLanes + l)] = exponent_of(x, model.operand_min_exponent);
      }
    for (std::int64_t row = 0; row < m; ++row) {
      float lanes[kLanes] = {};
      float* to = c + row * n + column;
      std::copy(to, to + width, lanes);
      if (finite && row_of_lanes(model, k, &a_value[static_cast<std::size_t>(row * k)],
                                 &a_exponent[static_cast<std::size_t>(row * k)], b_value.data(), b_exponent.data(), lanes)) {
        std::copy(lanes, lanes + width, to);
        continue;
      }
      std::vector<float> column_values(static_cast<std::size_t>(k));
      for (std::int64_t l = 0; l < width; ++l) {  // NaN or infinity somewhere: element by element
        for (std::int64_t t = 0; t < k; ++t) column_values[static_cast<std::size_t>(t)] = b[t * n + column + l];
        to[l] = mma_dot(model, a + row * k, column_values.data(), k, to[l]);
      }
    }
  }
}

}  // namespace deltagauge::reference
