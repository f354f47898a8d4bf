// DoubleDouble against 237 bits, within the errors real.h states; the compiled paths against each other, bit by bit.
#include "oracle/real.h"

#include <gtest/gtest.h>

#include "core/inputs.h"
#include "oracle/gate.h"
#include "oracle/real_wide.h"

namespace deltagauge::oracle {
namespace {

constexpr double kU2 = 0x1p-106;

Oct wide(DoubleDouble x) { return Oct(x.hi) + Oct(x.lo); }
double relative(const Oct& got, const Oct& want) {
  return want == 0 ? static_cast<double>(abs(got)) : static_cast<double>(abs((got - want) / want));
}

// Pairs (hi, lo) from two f32 draws, the second scaled below half an ulp of the first.
std::vector<DoubleDouble> operands() {
  const std::vector<double> x = to_f64(get(make_inputs(parse_id("l2norm/fwd/len=64,HK=1,K=32/f32/seed=3")), "x"));
  std::vector<DoubleDouble> all;
  for (std::size_t i = 0; i + 1 < x.size(); i += 2) all.push_back(two_sum(x[i], x[i] * x[i + 1] * 0x1p-57));
  return all;
}

TEST(DoubleDouble, AddsMultipliesAndDividesWithinTheStatedErrors) {
  const std::vector<DoubleDouble> x = operands();
  for (std::size_t i = 0; i + 1 < x.size(); ++i) {
    const DoubleDouble a = x[i], b = x[i + 1], near{-a.hi, a.lo};
    EXPECT_LE(relative(wide(a + b), wide(a) + wide(b)), 3 * kU2);
    EXPECT_LE(relative(wide(a + near), wide(a) + wide(near)), 3 * kU2) << "under cancellation";
    EXPECT_LE(relative(wide(a * b), wide(a) * wide(b)), 7 * kU2);
    EXPECT_LE(relative(wide(a / b), wide(a) / wide(b)), 16 * kU2);
    EXPECT_LE(relative(wide(sqrt(a * a)), sqrt(wide(a * a))), 0x1p-96);
  }
}

TEST(DoubleDouble, ExpAndLog1pAreGoodTo96Bits) {
  for (const DoubleDouble& x : operands())
    for (const double scale : {1e-30, 1e-3, 1.0, 7.0, 60.0, 180.0}) {
      const DoubleDouble y = x * DoubleDouble(scale);
      if (std::abs(y.hi) > 600) continue;  // beyond, the low part of the result is subnormal
      EXPECT_LE(relative(wide(exp(y)), exp(wide(y))), 0x1p-96) << y.hi;
      const DoubleDouble z = exp(DoubleDouble(-std::abs(y.hi)));
      EXPECT_LE(relative(wide(log1p(z)), log1p(wide(z))), 0x1p-96) << z.hi;
    }
}

TEST(Quad, ExpLosesWhatItsArgumentReductionDoes) {
  for (const DoubleDouble& x : operands())
    for (const double scale : {1e-3, 1.0, 60.0}) {
      const double y = x.hi * scale;
      EXPECT_LE(relative(Oct(exp(Quad(y))), exp(Oct(y))), (std::abs(y) + 4) * 0x1p-113) << y;
    }
}

TEST(DoubleDouble, ExpMeetsItsLimits) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(static_cast<double>(exp(DoubleDouble(-inf))), 0);
  EXPECT_EQ(static_cast<double>(exp(DoubleDouble(-1e38))), 0);
  EXPECT_EQ(static_cast<double>(exp(DoubleDouble(inf))), inf);
  EXPECT_EQ(static_cast<double>(exp(DoubleDouble(-0.0))), 1);
  EXPECT_TRUE(std::isnan(static_cast<double>(exp(DoubleDouble(std::nan(""))))));
  EXPECT_EQ(static_cast<double>(log1p(DoubleDouble(0.0))), 0);
  EXPECT_EQ(static_cast<double>(sqrt(DoubleDouble(0.0))), 0);
}

TEST(DoubleDouble, DivisionAndRootMeetTheirLimits) {
  const double inf = std::numeric_limits<double>::infinity();
  const auto ratio = [](double a, double b) { return static_cast<double>(DoubleDouble(a) / DoubleDouble(b)); };
  EXPECT_EQ(ratio(3, inf), 0);
  EXPECT_TRUE(std::signbit(ratio(-3, inf)));
  EXPECT_EQ(ratio(inf, -2), -inf);
  EXPECT_EQ(ratio(1, 0), inf);
  EXPECT_TRUE(std::isnan(ratio(inf, inf)));
  EXPECT_EQ(static_cast<double>(sqrt(DoubleDouble(inf))), inf);
  const DoubleDouble r = DoubleDouble(1.0) / sqrt(DoubleDouble(inf));
  EXPECT_EQ(r.hi, 0);
  EXPECT_EQ(r.lo, 0);
}

TEST(Dot, KeepsItsErrorBoundWhenTheSumCancels) {
  const std::vector<DoubleDouble> x = operands();
  Dot<DoubleDouble> dot;
  Oct want = 0, magnitude = 0;
  const auto add = [&](DoubleDouble a, DoubleDouble b) {
    dot.add(a, b);
    want += wide(a) * wide(b);
    magnitude += abs(wide(a) * wide(b));
  };
  for (std::size_t i = 0; i + 1 < x.size(); ++i) add(x[i], x[i + 1]);
  for (std::size_t i = 0; i + 1 < x.size(); ++i) add(x[i], DoubleDouble(-x[i + 1].hi));
  const double n = 2 * static_cast<double>(x.size() - 1);
  EXPECT_LE(static_cast<double>(abs(wide(dot.sum()) - want)), n * (n + 7) * kU2 * static_cast<double>(magnitude));
}

TEST(Vectorised, GivesTheBitsOfThePlainBuild) {
  const std::vector<DoubleDouble> x = operands();
  std::vector<DoubleDouble> plain, fast;
  const auto fill = [&](std::vector<DoubleDouble>& out) {
    for (const DoubleDouble& y : x) out.push_back(exp(y) * y + softplus(y));
  };
  fill(plain);
  vectorised<DoubleDouble>([&] { fill(fast); });
  for (std::size_t i = 0; i < x.size(); ++i) {
    EXPECT_EQ(plain[i].hi, fast[i].hi);
    EXPECT_EQ(plain[i].lo, fast[i].lo);
  }
}

}  // namespace
}  // namespace deltagauge::oracle
