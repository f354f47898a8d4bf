// The metrics are tested on values small enough to work out by hand: a metric that is wrong passes everything.
#include "validate/metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/error.h"

namespace deltagauge::validate {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity(), kNan = std::numeric_limits<double>::quiet_NaN();

// rows x width elements, all judged but the last `skipped` rows, each row with that budget spread over the whole row.
struct Table {
  std::int64_t rows, width, skipped = 0;
  double budget = 1;
  DType dtype = DType::f32;

  reports::TensorMetrics measure(std::vector<double> got, std::vector<double> want) const {
    const Rows split{width, rows, {{0, rows - skipped, 1, 0, 0, 0}}};
    const auto count = static_cast<std::size_t>(rows);
    const Budget each{std::vector<double>(count, budget), std::vector<double>(count, static_cast<double>(width)), "test"};
    return validate::measure(from_f64(dtype, {rows, width}, got), from_f64(DType::f64, {rows, width}, want), split, each);
  }
};

TEST(Metrics, AreAllZeroWhenEverythingIsRight) {
  const auto m = Table{2, 2}.measure({1, 2, 3, 4}, {1, 2, 3, 4});
  for (const double value :
       {m.rel_l2, m.max_abs, m.ulp_p50, m.ulp_p99, m.ulp_max, m.row_ratio, m.element_ratio, m.worst_row, m.bias})
    EXPECT_EQ(value, 0);
  EXPECT_EQ(m.non_finite, 0);
}

TEST(Metrics, RelativeL2IsErrorNormOverRightNorm) {
  EXPECT_DOUBLE_EQ((Table{1, 2}.measure({3, 5}, {3, 4}).rel_l2), 1.0 / 5);
  EXPECT_DOUBLE_EQ((Table{2, 2}.measure({3, 1, 0, 4}, {3, 0, 0, 4}).rel_l2), 1.0 / 5);
  EXPECT_DOUBLE_EQ((Table{1, 2}.measure({0, 0}, {3, 4}).rel_l2), 1);    // zeros are wholly wrong
  EXPECT_DOUBLE_EQ((Table{1, 2}.measure({-3, -4}, {3, 4}).rel_l2), 2);  // so is a sign
  EXPECT_EQ((Table{1, 2}.measure({0, 1}, {0, 0}).rel_l2), kInf);
}

TEST(Metrics, MaxAbsIsTheLargestErrorNotTheLargestValue) {
  EXPECT_DOUBLE_EQ((Table{1, 3}.measure({100, 2, -7}, {100, 2.5, -4}).max_abs), 3);
}

TEST(Metrics, RowRatioIsTheWorstRowOverItsBudget) {
  const auto m = Table{3, 2, 0, 2}.measure({1, 0, 0, 3, 5, 5}, {1, 1, 0, 0, 5, 5});
  EXPECT_DOUBLE_EQ(m.row_ratio, 1.5);
  EXPECT_DOUBLE_EQ(m.element_ratio, 3 * std::sqrt(2.0) / 2);
  EXPECT_DOUBLE_EQ(m.budget, 2);
  ASSERT_TRUE(m.worst.has_value());
  EXPECT_EQ(m.worst->index, (std::vector<std::int64_t>{1, 1}));
  EXPECT_EQ(m.worst->got, 3);
  EXPECT_EQ(m.worst->want, 0);
}

TEST(Metrics, ErrorWithoutBudgetIsInfinitelyFarAndNoErrorIsNot) {
  EXPECT_EQ((Table{1, 1, 0, 0}.measure({1}, {2}).row_ratio), kInf);
  EXPECT_EQ((Table{1, 1, 0, 0}.measure({1}, {2}).element_ratio), kInf);
  EXPECT_EQ((Table{1, 1, 0, 0}.measure({2}, {2}).row_ratio), 0);
}

TEST(Metrics, RowsInNoSeriesAreNotLookedAt) {
  const auto m = Table{2, 2, 1}.measure({1, 2, 9, kNan}, {1, 2, kNan, 4});
  EXPECT_EQ(m.rel_l2, 0);
  EXPECT_EQ(m.non_finite, 0);
}

TEST(Metrics, WorstRowIsRelativeToItsOwnNormOrTheMedianRow) {
  // row norms 5, 0.5, 5; errors 0, 1, 1
  const auto m = Table{3, 2}.measure({3, 4, 0, 1.5, 3, 5}, {3, 4, 0, 0.5, 3, 4});
  EXPECT_DOUBLE_EQ(m.worst_row, 1.0 / 5);
}

TEST(Metrics, BiasIsOneForEqualErrorsAndZeroForOpposedOnes) {
  EXPECT_DOUBLE_EQ((Table{1, 4}.measure({2, 3, 4, 5}, {1, 2, 3, 4}).bias), 1);
  EXPECT_DOUBLE_EQ((Table{1, 4}.measure({0, 1, 2, 3}, {1, 2, 3, 4}).bias), -1);
  EXPECT_DOUBLE_EQ((Table{1, 2}.measure({2, 1}, {1, 2}).bias), 0);
  EXPECT_DOUBLE_EQ((Table{1, 4}.measure({1, 0, 0, 0}, {0, 0, 0, 0}).bias), 0.25 / 0.5);
}

TEST(Metrics, UlpsAreStepsOfTheStoredFormat) {
  const Table bf16{1, 4, 0, 1, DType::bf16};
  // 1 + 2^-7 is the next bf16 after 1; 1 + 2^-9 rounds to 1
  const auto m = bf16.measure({1 + 0x1p-7, 1, 2, 4}, {1, 1 + 0x1p-9, 2, 4});
  EXPECT_EQ(m.ulp_max, 1);
  EXPECT_EQ(m.ulp_p50, 0);
  EXPECT_EQ(m.ulp_p99, 1);  // the 99th percentile of four is the largest
}

TEST(Metrics, PercentilesAreRanksOfTheSortedDistances) {
  std::vector<double> want(100, 1), got(100, 1);
  for (std::size_t i = 0; i < 100; ++i) got[i] = 1 + static_cast<double>(i) * 0x1p-23;  // i f32 steps
  const auto m = Table{1, 100}.measure(got, want);
  EXPECT_EQ(m.ulp_p50, 49);
  EXPECT_EQ(m.ulp_p99, 98);
  EXPECT_EQ(m.ulp_max, 99);
}

struct Sets {
  const char* what;
  DType dtype;
  double got, want, budget;
  std::int64_t non_finite;
};
class MetricsOnSets : public testing::TestWithParam<Sets> {};

TEST_P(MetricsOnSets, NanAndInfinityAreComparedFirst) {
  const Sets& c = GetParam();
  const auto m = Table{1, 2, 0, c.budget, c.dtype}.measure({c.got, 1}, {c.want, 1});
  EXPECT_EQ(m.non_finite, c.non_finite) << c.what;
  if (c.non_finite) {
    ASSERT_TRUE(m.worst.has_value());
    EXPECT_EQ(m.worst->index, (std::vector<std::int64_t>{0, 0}));
  }
  EXPECT_TRUE(std::isfinite(m.rel_l2)) << c.what;
}
INSTANTIATE_TEST_SUITE_P(
    All, MetricsOnSets,
    testing::Values(Sets{"NaN where a number is right", DType::f32, kNan, 1, 1, 1},
                    Sets{"a number where NaN is right", DType::f32, 1, kNan, 1, 1},
                    Sets{"both NaN", DType::f32, kNan, kNan, 1, 0}, Sets{"both +Inf", DType::f32, kInf, kInf, 1, 0},
                    Sets{"infinities of opposite sign", DType::f32, kInf, -kInf, 1, 1},
                    Sets{"NaN where Inf is right", DType::f32, kNan, kInf, 1, 1},
                    Sets{"Inf where a number is right", DType::f16, kInf, 60000, 1, 1},
                    Sets{"Inf where a number beyond the format is right", DType::f16, kInf, 88388, 1, 0},
                    Sets{"Inf of the wrong sign beyond the format", DType::f16, -kInf, 88388, 1, 1},
                    Sets{"Inf of the wrong sign below the format", DType::f16, kInf, -88388, 1, 1},
                    Sets{"Inf of the wrong sign within the budget of the format's end", DType::f16, -kInf, 65500, 20, 1},
                    Sets{"Inf of the wrong sign, budget past both ends", DType::f16, -kInf, 100, 1e6, 1},
                    Sets{"Inf where the right one is of the other sign", DType::f16, kInf, -kInf, 1e6, 1},
                    Sets{"a number where Inf is right", DType::f16, 65504, kInf, 1e6, 1},
                    Sets{"Inf within the budget of the format's end", DType::f16, kInf, 65500, 20, 0},
                    Sets{"Inf outside the budget of the format's end", DType::f16, kInf, 65400, 20, 1}));

TEST(Metrics, SaturationBeyondTheFormatIsAnError) {
  const auto m = Table{1, 1, 0, 32, DType::f16}.measure({65504}, {88388});
  EXPECT_EQ(m.non_finite, 0);
  EXPECT_DOUBLE_EQ(m.row_ratio, (88388 - 65504) / 32.0);
}

TEST(Metrics, RatiosDoNotChangeWhenValuesAndBudgetsAreScaledTogether) {
  const auto a = Table{2, 2, 0, 1}.measure({1, 2, 3, 5}, {1, 2.5, 3, 4});
  const auto b = Table{2, 2, 0, 4}.measure({4, 8, 12, 20}, {4, 10, 12, 16});
  EXPECT_EQ(a.row_ratio, b.row_ratio);
  EXPECT_EQ(a.element_ratio, b.element_ratio);
  EXPECT_EQ(a.rel_l2, b.rel_l2);
  EXPECT_EQ(a.worst_row, b.worst_row);
}

TEST(Metrics, ShapesMustAgree) {
  const Rows rows{2, 1, {{0, 1, 1, 0, 0, 0}}};
  EXPECT_THROW(measure(Tensor(DType::f32, {1, 2}), Tensor(DType::f64, {2, 1}), rows, {{1}, {2}, ""}), Error);
}

TEST(BitMismatch, CountsDifferencesAndNamesTheFirst) {
  const Rows rows{2, 3, {{0, 2, 1, 0, 0, 0}}};  // the third row is not judged
  const double a[] = {1, 2, 3, 4, 5, 6}, b[] = {1, 2, 7, 8, 9, 9};
  const Tensor x = from_f64(DType::f32, {3, 2}, a), y = from_f64(DType::f32, {3, 2}, b);
  EXPECT_EQ(bit_mismatch(Problem{}, "x", x, x, rows), "");
  EXPECT_EQ(bit_mismatch(Problem{}, "x", x, y, rows), "2 of 4 elements differ, first at [1, 0]: got 3, want 7");
}

TEST(BitMismatch, ZerosOfEitherSignDifferAndEqualNansDoNot) {
  const Rows rows{1, 1, {{0, 1, 1, 0, 0, 0}}};
  const double zero[] = {0.0}, minus[] = {-0.0}, nan[] = {kNan};
  const auto t = [](const double(&v)[1]) { return from_f64(DType::f32, {1, 1}, v); };
  EXPECT_NE(bit_mismatch(Problem{}, "x", t(zero), t(minus), rows), "");
  EXPECT_EQ(bit_mismatch(Problem{}, "x", t(nan), t(nan), rows), "");
}

TEST(Metrics, map_the_worst_row_ratio_by_head_and_place) {
  Problem p;
  p.lengths = {3, 0, 200};
  p.HV = p.HK = 2;
  p.V = 1;
  const Tensor want(DType::f64, {203, 2, 1});
  Tensor got(DType::f32, {203, 2, 1});
  got.set({2, 1, 0}, 0.5);
  got.set({202, 0, 0}, 3);
  got.set({100, 1, 0}, NAN);
  const Rows rows = rows_of(p, "o", got.shape());
  const Budget budget{std::vector<double>(406, 1.0), std::vector<double>(406, 1.0), "one"};
  const auto map = measure(got, want, rows, budget).map.value();
  EXPECT_EQ(map.heads, 2);
  EXPECT_EQ(map.rows_per_block, 2);  // 203 tokens in at most 128 blocks
  EXPECT_EQ(map.blocks, 102);
  EXPECT_EQ(map.row_ratio[102 + 1], 0.5);
  EXPECT_EQ(map.row_ratio[101], 3);
  EXPECT_TRUE(std::isnan(map.row_ratio[102 + 50]));
  EXPECT_EQ(map.row_ratio[0], 0);
}

}  // namespace
}  // namespace deltagauge::validate
