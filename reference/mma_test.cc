#include "reference/mma.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "core/inputs.h"

namespace deltagauge::reference {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
std::uint32_t bits(float x) { return std::bit_cast<std::uint32_t>(x); }

// Products p_i = a_i * 1, exact for the values used here.
float sum(const MmaModel& model, std::vector<float> products, float c) {
  const std::vector<float> ones(products.size(), 1.0f);
  return mma_dot(model, products.data(), ones.data(), static_cast<std::int64_t>(products.size()), c);
}

struct Probe {
  const char* what;
  const MmaModel* model;
  std::vector<float> products;
  float c, want;
};

TEST(Mma, gives_the_known_answers_of_the_hardware_probes) {
  const float below_one = 1 - 0x1p-24f;
  const Probe probes[] = {
      {"2^-24 below C = 1 is on the grid, and the last rounding is towards zero", &kHopperF16, {0x1p-24f}, 1, 1},
      {"two of 2^-24 make one ulp", &kHopperF16, {0x1p-24f, 0x1p-24f}, 1, 1 + 0x1p-23f},
      {"four of 2^-25 make one ulp: two extra bits",
       &kHopperBf16,
       {0x1p-25f, 0x1p-25f, 0x1p-25f, 0x1p-25f},
       1,
       1 + 0x1p-23f},
      {"eight of 2^-26 vanish", &kHopperBf16, std::vector<float>(8, 0x1p-26f), 1, 1},
      {"2^-24 on Ampere is on the grid", &kAmpereBf16, {0x1p-24f, 0x1p-24f}, 1, 1 + 0x1p-23f},
      {"2^-25 on Ampere vanishes", &kAmpereBf16, std::vector<float>(8, 0x1p-25f), 1, 1},
      {"1 - 2^-24 is kept", &kHopperBf16, {-0x1p-24f}, 1, below_one},
      {"1 - 2^-25 goes to zero's side", &kHopperBf16, {-0x1p-25f}, 1, below_one},
      {"1 - 2^-26 is cut before the sum", &kHopperBf16, {-0x1p-26f}, 1, 1},
      {"the sum is exact whatever the order", &kHopperBf16, {0x1p24f, 1, -0x1p24f}, 0, 1},
      {"what lies 26 bits below the largest is lost in its group", &kHopperBf16, {0x1p26f, 1, -0x1p26f}, 0, 0},
      {"f16 subnormals count with exponent -14", &kHopperF16, {0x1p-24f}, 0, 0x1p-24f},
      {"bf16 subnormals are kept", &kHopperBf16, {0x1p-133f}, 0, 0x1p-133f},
      {"f32 subnormal accumulators are kept", &kHopperBf16, {0}, 0x1p-149f, 0x1p-149f},
      {"an exact zero is +0", &kHopperBf16, {1, -1}, -0.0f, 0.0f},
      {"overflow is infinity", &kHopperBf16, {0x1p127f, 0x1p127f}, 0, kInf},
      {"infinity passes through", &kHopperBf16, {-kInf, 1}, 0, -kInf},
      {"a zero product does not raise the grid", &kHopperBf16, {0, 0x1p-140f + 0x1p-133f}, 0, 0x1p-140f + 0x1p-133f},
  };
  for (const Probe& p : probes) EXPECT_EQ(bits(sum(*p.model, p.products, p.c)), bits(p.want)) << p.what;
}

TEST(Mma, products_below_the_smallest_alignment_exponent_are_cut) {
  // Grid 2^(-133 - 25) whatever the operands: 2^-80 * 2^-80 is below it, and 2^-75 * 2^-74 stands as 2^-149.
  const float tiny[] = {0x1p-80f}, a[] = {0x1p-75f}, b[] = {0x1p-74f};
  EXPECT_EQ(mma_dot(kHopperBf16, tiny, tiny, 1, 0), 0.0f);
  EXPECT_EQ(mma_dot(kHopperBf16, a, b, 1, 0), 0x1p-149f);
}

TEST(Mma, groups_are_summed_one_after_the_other) {
  // 2^26, then 1 in the next group, then -2^26: 1 falls below one ulp of the accumulator and is lost; in one group of
  // the cancelling pair it stays.
  std::vector<float> apart(48, 0.0f), together(48, 0.0f);
  apart[0] = 0x1p26f, apart[16] = 1, apart[32] = -0x1p26f;
  together[0] = 0x1p26f, together[1] = -0x1p26f, together[16] = 1;
  EXPECT_EQ(sum(kHopperBf16, apart, 0), 0.0f);
  EXPECT_EQ(sum(kHopperBf16, together, 0), 1.0f);
  std::vector<float> eight(16, 0.0f);  // one group of 16 on Hopper, two of 8 on Ampere
  eight[0] = 0x1p24f, eight[8] = 0x1p-1f, eight[9] = -0x1p24f;
  EXPECT_EQ(sum(kHopperBf16, eight, 0), 0.5f);
  EXPECT_EQ(sum(kAmpereBf16, eight, 0), 0.0f);
}

TEST(Mma, infinity_minus_infinity_and_nan_give_the_canonical_nan) {
  EXPECT_EQ(bits(sum(kHopperBf16, {kInf, -kInf}, 0)), 0x7fffffffu);
  EXPECT_EQ(bits(sum(kHopperBf16, {1}, std::numeric_limits<float>::quiet_NaN())), 0x7fffffffu);
  const float zero = 0, inf = kInf;
  EXPECT_EQ(bits(mma_dot(kHopperBf16, &zero, &inf, 1, 0)), 0x7fffffffu);
}

TEST(Mma, a_format_of_wide_spread_meets_the_same_rule) {
  // f16 2^-24 is 2^-10 at exponent -14: with 2^12 it stands at -2, so the grid is 2^-27 and 2^-28 is cut.
  const float a[] = {0x1p-24f, 0x1p-14f}, b[] = {0x1p12f, 0x1p-14f};
  EXPECT_EQ(mma_dot(kHopperF16, a, b, 2, 0), 0x1p-12f);
}

TEST(Mma, the_blocked_product_equals_the_single_dot_bit_for_bit) {
  for (const char* id : {"gdn/fwd/len=37,HK=1,HV=1,K=100,V=83/bf16", "gdn/fwd/len=64,HK=1,HV=1,K=64,V=128/f16/v=normal=1000",
                         "gdn/fwd/len=19,HK=1,HV=1,K=24,V=30/bf16/v=normal=1e-37"}) {
    const Case c = parse_id(id);
    const Tensors inputs = make_inputs(c);
    const std::int64_t n = c.problem.K, k = c.problem.tokens(), m = c.problem.V;
    const auto floats = [&](const char* name) {
      const std::vector<double> wide = to_f64(get(inputs, name));
      return std::vector<float>(wide.begin(), wide.end());
    };
    const std::vector<float> v = floats("v"), keys = floats("k");
    std::vector<float> a(static_cast<std::size_t>(m * k));
    for (std::int64_t i = 0; i < m; ++i)
      for (std::int64_t t = 0; t < k; ++t) a[static_cast<std::size_t>(i * k + t)] = v[static_cast<std::size_t>(t * m + i)];
    for (const MmaModel& model : {kHopperBf16, kHopperF16, kAmpereBf16, kHopperTf32}) {
      std::vector<float> got(static_cast<std::size_t>(m * n), 0.25f);
      if (m > 2) got[static_cast<std::size_t>(n + 1)] = kInf;  // a row that falls back to single dots
      const std::vector<float> c0 = got;
      mma_matmul(model, m, n, k, a.data(), keys.data(), got.data());
      std::int64_t different = 0;
      for (std::int64_t i = 0; i < m; ++i)
        for (std::int64_t j = 0; j < n; ++j) {
          std::vector<float> column;
          for (std::int64_t t = 0; t < k; ++t) column.push_back(keys[static_cast<std::size_t>(t * n + j)]);
          const auto at = static_cast<std::size_t>(i * n + j);
          different += bits(mma_dot(model, &a[static_cast<std::size_t>(i * k)], column.data(), k, c0[at])) != bits(got[at]);
        }
      EXPECT_EQ(different, 0) << id << " " << model.name;
    }
  }
}

TEST(Mma, the_blocked_product_falls_back_where_an_accumulator_overflows) {
  const std::vector<float> a(64, 0x1p120f);  // [1, 64]
  std::vector<float> b(128, 0x1p5f);         // [64, 2]; overflows after the first groups, in column 1 comes back to NaN
  b[1 + 2 * 63] = -kInf;
  std::vector<float> c(2, 0.0f);
  mma_matmul(kHopperBf16, 1, 2, 64, a.data(), b.data(), c.data());
  EXPECT_EQ(c[0], kInf);
  EXPECT_EQ(bits(c[1]), 0x7fffffffu);
}

}  // namespace
}  // namespace deltagauge::reference
