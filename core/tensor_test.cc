#include "core/tensor.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace deltagauge {
namespace {

TEST(Tensor, StoresRoundedValuesByLogicalIndex) {
  Tensor t(DType::bf16, {2, 3});
  t.set({1, 2}, 1 + 0x1p-9);
  EXPECT_EQ(t.at({1, 2}), 1);
  EXPECT_EQ(t.at({0, 0}), 0);
  EXPECT_EQ(t.nbytes(), 12u);
  EXPECT_THROW(t.at({2, 0}), Error);
  EXPECT_THROW(t.at({0}), Error);
}

TEST(Tensor, KeepsStridesAndPacksOnCast) {
  Tensor t = Tensor::strided(DType::f32, {2, 2}, {5, 1});
  t.set({0, 1}, 1);
  t.set({1, 0}, 2);
  EXPECT_EQ(t.nbytes(), 7 * 4u);
  EXPECT_FALSE(t.contiguous());
  EXPECT_EQ(to_f64(t), (std::vector<double>{0, 1, 2, 0}));
  EXPECT_TRUE(bitwise_equal(t, cast(t, DType::f32)));
  EXPECT_EQ(to_f64(rows(t, 1, 1)), (std::vector<double>{2, 0}));
}

TEST(Tensor, RefusesWrongTypesAndShapesInWords) {
  Tensor t(DType::f32, {2});
  EXPECT_THROW(t.as<double>(), Error);
  EXPECT_THROW(Tensor(DType::f32, {-1}), Error);
  EXPECT_THROW(Tensor(DType::f32, {std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
  EXPECT_THROW(rows(t, 1, 2), Error);
  Tensors named;
  named.emplace("q", t);
  try {
    get(named, "k");
    FAIL();
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "tensor 'k' is missing; there are: q");
  }
}

TEST(Tensor, HoldsNoElementsWhenADimensionIsZero) {
  const Tensor t(DType::f32, {0, 4});
  EXPECT_TRUE(t.empty());
  EXPECT_EQ(to_f64(t).size(), 0u);
  EXPECT_TRUE(bitwise_equal(t, Tensor(DType::f32, {0, 4})));
}

TEST(Tensor, BitwiseEqualityTellsSignedZerosApart) {
  Tensor a(DType::f16, {1}), b(DType::f16, {1});
  b.set({0}, -0.0);
  EXPECT_FALSE(bitwise_equal(a, b));
}

}  // namespace
}  // namespace deltagauge
