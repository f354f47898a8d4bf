// What l2norm takes.
#include <gtest/gtest.h>

#include "kernels/l2norm/l2norm.h"

namespace deltagauge::kernels::l2norm {
namespace {

TEST(Supports, RefusalsSayExpectedAndGot) {
  const struct {
    Args args;
    std::string reason;  // empty: supported
  } rows[] = {
      {{.T = 1, .H = 1, .K = 1}, ""},
      {{.T = 1, .H = 1, .K = 1024, .io = DType::f32}, ""},
      {{.T = 1, .H = 1, .K = 1025}, "K: expected a value in [1, 1024], got 1025"},
      {{.T = 1, .H = 1, .K = 0}, "K: expected a value in [1, 1024], got 0"},
      {{.T = 1, .H = 1, .K = 64, .io = DType::f64}, "io: expected one of f32 bf16 f16, got f64"},
  };
  for (const auto& row : rows) EXPECT_EQ(unsupported(row.args).value_or(""), row.reason);
}

}  // namespace
}  // namespace deltagauge::kernels::l2norm
