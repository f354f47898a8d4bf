// The 16-bit conversions, over every pattern and every tie.
#include "core/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "core/dtype.h"

namespace deltagauge {
namespace {

template <class Half>
Half make(std::uint32_t bits) {
  return Half{static_cast<std::uint16_t>(bits)};
}
Bf16 convert(double x, Bf16) { return to_bf16(x); }
F16 convert(double x, F16) { return to_f16(x); }

template <class Half>
class EveryPattern : public testing::Test {};
using Formats = testing::Types<Bf16, F16>;
TYPED_TEST_SUITE(EveryPattern, Formats);

TYPED_TEST(EveryPattern, SurvivesARoundTrip) {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const auto h = make<TypeParam>(b);
    const double x = to_f64(h);
    const auto back = convert(x, h);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(to_f64(back))) << b;
      EXPECT_EQ(back.bits >> 15, b >> 15);
    } else {
      EXPECT_EQ(back.bits, b);
    }
  }
}

TYPED_TEST(EveryPattern, RoundsTheGapToItsNextNeighbourToNearestTiesToEven) {
  const std::uint32_t infinity = std::is_same_v<TypeParam, Bf16> ? 0x7f80 : 0x7c00;
  for (std::uint32_t b = 0; b + 1 < infinity; ++b) {
    const double low = to_f64(make<TypeParam>(b)), high = to_f64(make<TypeParam>(b + 1));
    const double middle = (low + high) / 2;  // exact: one more bit than the format has
    const auto up = std::nextafter(middle, high), down = std::nextafter(middle, low);
    EXPECT_EQ(convert(middle, TypeParam{}).bits, b % 2 ? b + 1 : b);
    EXPECT_EQ(convert(up, TypeParam{}).bits, b + 1);
    EXPECT_EQ(convert(down, TypeParam{}).bits, b);
    EXPECT_EQ(convert(-middle, TypeParam{}).bits, 0x8000 + (b % 2 ? b + 1 : b));
  }
}

TYPED_TEST(EveryPattern, AgreesWithTheF32FastPath) {
  for (std::uint32_t b = 0; b < 0x10000; ++b) {
    const double x = to_f64(make<TypeParam>(b));
    if (std::isnan(x)) continue;
    for (const std::uint32_t low : {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu}) {
      const float f = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) ^ low);
      if (std::isnan(f)) continue;
      const float fast = std::is_same_v<TypeParam, Bf16> ? round_bf16(f) : round_f16(f);
      const auto exact = static_cast<float>(to_f64(convert(f, TypeParam{})));
      EXPECT_EQ(std::bit_cast<std::uint32_t>(fast), std::bit_cast<std::uint32_t>(exact)) << f;
    }
  }
}

TEST(Half, OverflowsToInfinityFromHalfAStepAboveTheLargest) {
  EXPECT_EQ(to_f64(to_f16(65519.99)), 65504);
  EXPECT_EQ(to_f64(to_f16(65520)), INFINITY);
  EXPECT_EQ(to_f64(to_f16(-1e300)), -INFINITY);
  EXPECT_EQ(to_f64(to_bf16(0x1.fefffp127)), 0x1.fep127);
  EXPECT_EQ(to_f64(to_bf16(0x1.ffp127)), INFINITY);
}

TEST(Half, DoesNotRoundTwice) {
  // Just above a bf16 tie, but f32 would round it onto the tie and then to even.
  const double x = 1 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(to_f64(to_bf16(x)), 1 + 0x1p-7);
  EXPECT_EQ(to_f64(to_bf16(static_cast<float>(x))), 1);
}

TEST(Tf32, TruncatesOrRoundsTiesAway) {
  const float x = 1 + 0x1p-11f;
  EXPECT_EQ(truncate_tf32(x), 1);
  EXPECT_EQ(round_tf32(x), 1 + 0x1p-10f);
  EXPECT_EQ(round_tf32(-x), -1 - 0x1p-10f);
  EXPECT_EQ(round_tf32(1 + 0x1p-12f), 1);
  EXPECT_TRUE(std::isinf(round_tf32(INFINITY)));
}

TEST(CutTf32, LeavesEveryTf32NumberAsItIs) {
  for (std::uint32_t b = 0; b < 1u << 19; ++b) {
    const float x = std::bit_cast<float>(b << 13);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(cut_tf32(x))) << b;
    } else {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(cut_tf32(x)), b << 13);
    }
  }
}

TEST(CutTf32, IsOneOfTheTwoNeighbours) {
  for (std::uint32_t b = 0x3f800000; b < 0x40000000; ++b) {
    const float x = std::bit_cast<float>(b), below = truncate_tf32(x);
    EXPECT_TRUE(cut_tf32(x) == below || cut_tf32(x) == below + 0x1p-10f) << b;
  }
}

TEST(CutTf32, HasAMeanErrorOfZeroAndNearlyTheRmsErrorOfRounding) {
  double sum = 0, squares = 0, rounded = 0, cut = 0;
  constexpr int kCount = 1 << 22;
  for (int i = 0; i < kCount; ++i) {  // log-uniform over a binade
    const auto x = static_cast<float>(std::exp2((i + 0.5) / kCount));
    const double error = cut_tf32(x) / static_cast<double>(x) - 1, nearest = round_tf32(x) / static_cast<double>(x) - 1;
    sum += error;
    squares += error * error;
    rounded += nearest * nearest;
    cut += truncate_tf32(x) / static_cast<double>(x) - 1;
  }
  const double u = unit_roundoff(DType::f16), ln2 = std::log(2);  // as many fraction bits
  EXPECT_LT(std::fabs(cut / kCount + u / (2 * ln2)), u * u);
  EXPECT_LT(std::fabs(sum / kCount), u * u);
  // Step s / m with 1 / m of mean 1 / (2 ln 2) and mean square 3 / (8 ln 2): a variance of s^2 / (12 m^2) within the steps,
  // and of s^2 / 4 times that of 1 / m between them.
  EXPECT_LT(std::fabs(std::sqrt(squares / rounded) - std::sqrt(1 + 3 * (1 - 2 / (3 * ln2)))), u);
}

TEST(CutTf32, KeepsWhatIsNotFinite) {
  EXPECT_EQ(cut_tf32(INFINITY), INFINITY);
  EXPECT_EQ(cut_tf32(-INFINITY), -INFINITY);
  EXPECT_EQ(std::bit_cast<std::uint32_t>(cut_tf32(-0.0f)), 0x80000000u);
  for (const std::uint32_t nan : {0x7fc00000u, 0x7fffffffu, 0x7f800001u, 0xff800001u, 0xff801fffu})
    EXPECT_TRUE(std::isnan(cut_tf32(std::bit_cast<float>(nan)))) << nan;
  EXPECT_EQ(cut_tf32(std::numeric_limits<float>::max()), INFINITY);  // as the kernel's product
  EXPECT_EQ(cut_tf32(std::bit_cast<float>(0x7f7fe000u)), std::bit_cast<float>(0x7f7fe000u));
}

TEST(UlpDistance, CountsStepsOfTheFormat) {
  EXPECT_EQ(ulp_distance(DType::bf16, 1, 1 + 0x1p-7), 1);
  EXPECT_EQ(ulp_distance(DType::f16, 1, 1 + 0x1p-9), 2);
  EXPECT_EQ(ulp_distance(DType::f32, 0, -0.0), 0);
  EXPECT_EQ(ulp_distance(DType::f32, 0x1p-149, -0x1p-149), 2);
  EXPECT_EQ(ulp_distance(DType::f64, 1, std::nextafter(1.0, 2.0)), 1);
  EXPECT_EQ(ulp_distance(DType::f16, NAN, NAN), 0);
  EXPECT_EQ(ulp_distance(DType::f16, NAN, 1), INT64_MAX);
  EXPECT_EQ(ulp_distance(DType::f16, 65504, INFINITY), 1);
}

}  // namespace
}  // namespace deltagauge
