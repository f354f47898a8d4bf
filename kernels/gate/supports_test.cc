// What gate takes.
#include <gtest/gtest.h>

#include "kernels/gate/gate.h"

namespace deltagauge::kernels::gate {
namespace {

TEST(Supports, RefusalsSayExpectedAndGot) {
  const struct {
    Args args;
    std::string reason;  // empty: supported
  } rows[] = {
      {{.T = 1, .HV = 32}, ""},
      {{.T = 1, .HV = 96, .K = 128, .io = DType::f32}, ""},
      {{.T = 1, .HV = 1 << 20, .K = 1 << 12}, "HV * K: expected at most 2147483647, got HV = 1048576, K = 4096"},
      {{.T = 1, .HV = 32, .io = DType::i64}, "io: expected one of f32 bf16 f16, got i64"},
  };
  for (const auto& row : rows) EXPECT_EQ(unsupported(row.args).value_or(""), row.reason);
}

}  // namespace
}  // namespace deltagauge::kernels::gate
