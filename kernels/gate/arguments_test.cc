// Bad arguments of gate::fwd: found before anything touches a device, so no GPU is needed.
#include <functional>
#include <limits>

#include "kernels/gate/gate.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::gate {
namespace {

alignas(16) char memory[64];  // stands for device memory; never read

TEST(Fwd, BadArgumentsGiveAnErrorWithExpectedAndGot) {
  constexpr auto kNan = std::numeric_limits<float>::quiet_NaN(), kInf = std::numeric_limits<float>::infinity();
  const struct {
    std::function<void(Args&)> spoil;
    std::string message;
  } rows[] = {
      {[](Args& a) { a.T = -1; }, "gate.fwd: T: expected at least 0, got -1"},
      {[](Args& a) { a.N = -1; }, "gate.fwd: N: expected at least 0, got -1"},
      {[](Args& a) { a.HV = 0; }, "gate.fwd: HV: expected at least 1, got 0"},
      {[](Args& a) { a.K = 0; }, "gate.fwd: K: expected at least 1, got 0"},
      {[](Args& a) { a.io = DType::f64; }, "gate.fwd: io: expected one of f32 bf16 f16, got f64"},
      {[](Args& a) { a.lower_bound = 1; }, "gate.fwd: lower_bound: expected a finite number <= 0, got 1"},
      {[](Args& a) { a.lower_bound = kNan; }, "gate.fwd: lower_bound: expected a finite number <= 0, got nan"},
      {[](Args& a) { a.lower_bound = -kInf; }, "gate.fwd: lower_bound: expected a finite number <= 0, got -inf"},
      {[](Args& a) { a.x = nullptr; }, "gate.fwd: x: expected a device pointer, got null"},
      {[](Args& a) { a.dt_bias = nullptr; }, "gate.fwd: dt_bias: expected a device pointer, got null"},
      {[](Args& a) { a.g = nullptr; }, "gate.fwd: g: expected a device pointer, got null"},
      {[](Args& a) { a.A_log = reinterpret_cast<float*>(memory + 2); },
       "gate.fwd: A_log: expected an address that is a multiple of 4 bytes, got remainder 2"},
  };
  for (const auto& row : rows) {
    float* p = reinterpret_cast<float*>(memory);
    Args args{.x = p, .A_log = p, .dt_bias = p, .g = p, .T = 4, .N = 1, .HV = 2, .transform = Transform::bounded};
    row.spoil(args);
    EXPECT_EQ(runtime::error_of([&] { fwd(args, nullptr); }), row.message);
  }
  EXPECT_NO_THROW(fwd({.HV = 1}, nullptr));
}

}  // namespace
}  // namespace deltagauge::kernels::gate
