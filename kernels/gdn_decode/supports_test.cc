// What gdn_decode takes.
#include <gtest/gtest.h>

#include "kernels/gdn_decode/gdn_decode.h"

namespace deltagauge::kernels::gdn_decode {
namespace {

TEST(Supports, RefusalsSayExpectedAndGot) {
  const struct {
    Args args;
    std::string reason;  // empty: supported
  } rows[] = {
      {{.B = 1, .HK = 1, .HV = 1, .K = 1, .V = 256}, ""},
      {{.B = 65536, .HK = 16, .HV = 32, .K = 128, .V = 128, .io = DType::f32, .state = DType::bf16}, ""},
      {{.B = 1, .HK = 1, .HV = 1, .K = 257, .V = 64}, "head sizes: expected K and V in [1, 256], got K = 257, V = 64"},
      {{.B = 1, .HK = 1, .HV = 1, .K = 64, .V = 0}, "head sizes: expected K and V in [1, 256], got K = 64, V = 0"},
      {{.B = 1, .HK = 1, .HV = 1, .K = 64, .V = 64, .io = DType::f64}, "io: expected one of f32 bf16 f16, got f64"},
      {{.B = 1, .HK = 1, .HV = 1, .K = 64, .V = 64, .state = DType::f16}, "state: expected one of f32 bf16, got f16"},
      {{.B = 1, .HK = 1, .HV = 1, .K = 64, .V = 64, .gate_dtype = DType::i32},
       "gate_dtype: expected one of f32 bf16 f16, got i32"},
      {{.B = 1 << 21, .HK = 16, .HV = 32, .K = 64, .V = 64}, "B * HV: expected at most 33554431, got B = 2097152, HV = 32"},
  };
  for (const auto& row : rows) EXPECT_EQ(unsupported(row.args).value_or(""), row.reason);
}

}  // namespace
}  // namespace deltagauge::kernels::gdn_decode
