// Rank tests against their published tables and against counting by hand, and what is refused.
#include "reports/compare/statistics.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"

namespace deltagauge::reports::compare {
namespace {

using Values = std::vector<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Values ramp(double first, int count) {
  Values out;
  for (int i = 0; i < count; ++i) out.push_back(first + i);
  return out;
}

double binomial(int n, int k) {
  double out = 1;
  for (int i = 1; i <= k; ++i) out = out * (n - k + i) / i;
  return out;
}

TEST(Quantile, is_linear_between_order_statistics) {
  const Values x = {40, 10, 20, 30};
  EXPECT_EQ(quantile(x, 0), 10);
  EXPECT_EQ(quantile(x, 1), 40);
  EXPECT_EQ(quantile(x, 0.25), 17.5);
  EXPECT_EQ(median(x), 25);
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({7}), 7);
}

TEST(RelativeDeviation, is_the_sample_deviation_over_the_mean) {
  EXPECT_EQ(relative_deviation(Values{2, 4}), std::sqrt(2.0) / 3);
  EXPECT_EQ(relative_deviation(Values{5, 5, 5}), 0);
}

TEST(MannWhitney, of_separated_lists_gives_the_smallest_p_that_there_is) {
  for (const int n : {1, 2, 3, 4, 7, 9, 20, 25}) {
    const RankTest up = mann_whitney(ramp(0, n), ramp(100, n)), down = mann_whitney(ramp(100, n), ramp(0, n));
    EXPECT_TRUE(up.exact);
    EXPECT_EQ(up.statistic, n * n);
    EXPECT_EQ(down.statistic, 0);
    EXPECT_DOUBLE_EQ(up.p, std::min(1.0, 2 / binomial(2 * n, n))) << n;
    EXPECT_EQ(up.p, down.p);
  }
}

// Mann and Whitney's own table, in orders out of binom(n + m, n): n = m = 3, U = 0, 1, 2 ... at most: 1, 2, 4, 7, 10.
TEST(MannWhitney, agrees_with_the_table_of_three_and_three) {
  const Values a = {1, 2, 3};
  const std::pair<Values, double> rows[] = {
      {{4, 5, 6}, 1}, {{2.5, 5, 6}, 2}, {{2.5, 2.6, 6}, 4}, {{0.5, 5, 6}, 7}, {{0.5, 2.5, 6}, 10}};
  const double u[] = {9, 8, 7, 6, 5};
  for (std::size_t i = 0; i < std::size(rows); ++i) {
    const RankTest test = mann_whitney(a, rows[i].first);
    EXPECT_EQ(test.statistic, u[i]);
    EXPECT_DOUBLE_EQ(test.p, std::min(1.0, 2 * rows[i].second / 20)) << i;
  }
}

// The exact law against all orders of 4 and 5 values.
TEST(MannWhitney, agrees_with_counting_every_order) {
  std::vector<double> counts(21);
  for (unsigned mask = 0; mask < 512; ++mask) {
    if (__builtin_popcount(mask) != 4) continue;
    int u = 0;
    for (int i = 0; i < 9; ++i)
      for (int j = i + 1; j < 9; ++j) u += (mask >> i & 1) && !(mask >> j & 1);
    ++counts[static_cast<std::size_t>(u)];
  }
  for (unsigned mask = 0; mask < 512; ++mask) {
    if (__builtin_popcount(mask) != 4) continue;
    Values a, b;
    for (int i = 0; i < 9; ++i) (mask >> i & 1 ? a : b).push_back(i);
    const RankTest test = mann_whitney(a, b);
    double tail = 0;
    for (std::size_t u = 0; u <= 20; ++u)
      if (static_cast<double>(u) >= std::max(test.statistic, 20 - test.statistic)) tail += counts[u];
    EXPECT_DOUBLE_EQ(test.p, std::min(1.0, 2 * tail / 126));
  }
}

TEST(MannWhitney, with_ties_uses_the_corrected_normal_law) {
  // U = 1 + 1/2 of 4; the variance of 2 x 2 with one tie of two: (5 - 6 / 12) / 3.
  const RankTest test = mann_whitney(Values{1, 2}, Values{2, 3});
  EXPECT_FALSE(test.exact);
  EXPECT_EQ(test.statistic, 3.5);
  EXPECT_DOUBLE_EQ(test.p, two_sided_p(1 / std::sqrt(1.5)));
  EXPECT_EQ(mann_whitney(Values{1, 1, 1}, Values{1, 1}).p, 1);  // nothing to rank
}

TEST(MannWhitney, of_long_lists_is_near_its_exact_law) {
  // 25 + 25 is exact, 26 + 25 normal: where the two lists interleave, both say nothing.
  EXPECT_TRUE(mann_whitney(ramp(0, 25), ramp(0.5, 25)).exact);
  const RankTest test = mann_whitney(ramp(0, 26), ramp(0.5, 25));
  EXPECT_FALSE(test.exact);
  EXPECT_EQ(test.p, 1);
  EXPECT_EQ(mann_whitney(ramp(0, 2000), ramp(1e6, 2000)).statistic, 4e6);
}

TEST(SignedRank, of_one_sign_gives_the_smallest_p_that_there_is) {
  for (const int n : {1, 4, 5, 10, 50}) {
    const RankTest test = signed_rank(ramp(1, n));
    EXPECT_TRUE(test.exact);
    EXPECT_EQ(test.statistic, n * (n + 1) / 2);
    EXPECT_EQ(test.p, std::ldexp(1.0, 1 - n));
  }
  // Wilcoxon's table: n = 5, rank sums of 0, 1, 2, 3: 1, 2, 3, 5 of 32 at most.
  EXPECT_EQ(signed_rank(Values{-1, 2, 3, 4, 5}).p, 2 * 2 / 32.0);
  EXPECT_EQ(signed_rank(Values{1, -2, 3, 4, 5}).p, 2 * 3 / 32.0);
  EXPECT_EQ(signed_rank(Values{-1, -2, 3, 4, 5}).p, 2 * 5 / 32.0);
}

TEST(SignedRank, leaves_zeros_out) {
  EXPECT_EQ(signed_rank(Values{0, 0}).p, 1);
  EXPECT_EQ(signed_rank(Values{0, 1, 2}).statistic, 3);
  EXPECT_FALSE(signed_rank(Values{0, 1, 2}).exact);
}

TEST(HodgesLehmann, is_the_median_of_all_differences) {
  const Values a = {1, 5, 9, 2}, b = {3, 8, 20, 4, 4};
  Values all;
  for (const double x : a)
    for (const double y : b) all.push_back(y - x);
  std::sort(all.begin(), all.end());
  const Interval shift = hodges_lehmann(a, b, 0.95);
  EXPECT_EQ(shift.centre, (all[9] + all[10]) / 2);
  // P(U <= 1) = 2 / 126 and P(U <= 2) = 4 / 126: the second smallest and second largest stand at 95 %.
  EXPECT_EQ(shift.low, all[1]);
  EXPECT_EQ(shift.high, all[18]);
}

TEST(HodgesLehmann, selects_exactly_among_many_differences) {
  Values a, b, all;
  for (int i = 0; i < 60; ++i) a.push_back(std::sin(i)), b.push_back(std::cos(3 * i) * 1e3);
  for (const double x : a)
    for (const double y : b) all.push_back(y - x);
  std::sort(all.begin(), all.end());
  const Interval shift = hodges_lehmann(a, b, 0.95);
  EXPECT_EQ(shift.centre, (all[1799] + all[1800]) / 2);
  const auto end = static_cast<std::size_t>(std::floor(1800 - z_of(0.05) * std::sqrt(3600 * 121 / 12.0)));
  EXPECT_EQ(shift.low, all[end - 1]);
  EXPECT_EQ(shift.high, all[3600 - end]);
  const Interval none = hodges_lehmann(Values(80, 2.0), Values(70, 2.0), 0.95);
  EXPECT_EQ(none.centre, 0);
  EXPECT_EQ(none.low, 0);
}

TEST(HodgesLehmann, has_no_interval_when_values_are_too_few) {
  const Interval shift = hodges_lehmann(Values{1, 2, 3}, Values{11, 12, 13}, 0.95);  // 2 / binom(6, 3) = 0.1
  EXPECT_EQ(shift.centre, 10);
  EXPECT_EQ(shift.low, -kInfinity);
  EXPECT_EQ(shift.high, kInfinity);
  EXPECT_EQ(hodges_lehmann(Values{1, 2, 3, 4}, Values{11, 12, 13, 14}, 0.95).low, 7);
}

TEST(HodgesLehmann, of_one_list_is_the_median_of_the_walsh_averages) {
  const Interval centre = hodges_lehmann(Values{4, 1, 2, 16, 8, 32}, 0.95);  // 2 / 2^6 = 0.031
  EXPECT_EQ(centre.low, 1);
  EXPECT_EQ(centre.high, 32);
  EXPECT_EQ(centre.centre, 8.5);
  EXPECT_EQ(hodges_lehmann(Values{1, 2}, 0.95).low, -kInfinity);
}

TEST(BenjaminiHochberg, adjusts_by_rank_and_stays_monotone) {
  EXPECT_EQ(benjamini_hochberg(Values{0.5, 0.125, 0.25, 0.25}), (Values{0.5, 1 / 3.0, 1 / 3.0, 1 / 3.0}));
  EXPECT_EQ(benjamini_hochberg(Values{0.25, 1}), (Values{0.5, 1}));
  EXPECT_TRUE(benjamini_hochberg({}).empty());
}

TEST(Statistics, refuse_empty_lists_and_numbers_that_are_not_finite) {
  const Values none, nan = {1, NAN}, fine = {1, 2};
  for (const Values& bad : {none, nan, Values{1, INFINITY}}) {
    EXPECT_THROW(median(bad), Error);
    EXPECT_THROW(relative_deviation(bad), Error);
    EXPECT_THROW(mann_whitney(bad, fine), Error);
    EXPECT_THROW(mann_whitney(fine, bad), Error);
    EXPECT_THROW(hodges_lehmann(bad, fine, 0.95), Error);
    EXPECT_THROW(hodges_lehmann(fine, bad, 0.95), Error);
    EXPECT_THROW(hodges_lehmann(bad, 0.95), Error);
    EXPECT_THROW(signed_rank(bad), Error);
  }
  EXPECT_THROW(benjamini_hochberg(nan), Error);
  EXPECT_THROW(relative_deviation(Values{1}), Error);
  EXPECT_THROW(quantile(fine, 2), Error);
}

}  // namespace
}  // namespace deltagauge::reports::compare
