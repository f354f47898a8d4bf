// The digest is XXH3's, and any bit counts.
#include "core/digest.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace deltagauge {
namespace {

TEST(Digest, is_that_of_the_published_algorithm) {
  EXPECT_EQ(digest(std::span<const std::byte>{}), "2d06800538d394c2");  // XXH3_64bits of nothing, seed 0
}

TEST(Digest, changes_with_any_bit_even_the_sign_of_zero) {
  const Tensor zero(DType::f32, {3, 2});
  Tensor other = zero;
  other.store(4, -0.0);
  EXPECT_NE(digest(zero), digest(other));
  EXPECT_EQ(digest(zero), digest(Tensor(DType::f32, {2, 3})));
}

TEST(Digest, refuses_a_tensor_with_gaps) { EXPECT_THROW(digest(Tensor::strided(DType::f32, {3, 2}, {4, 1})), Error); }

}  // namespace
}  // namespace deltagauge
