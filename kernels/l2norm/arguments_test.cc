// Bad arguments of l2norm::fwd: found before anything touches a device, so no GPU is needed.
#include <functional>

#include "kernels/l2norm/l2norm.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::l2norm {
namespace {

alignas(16) char memory[64];  // stands for device memory; never read

TEST(Fwd, BadArgumentsGiveAnErrorWithExpectedAndGot) {
  const struct {
    std::function<void(Args&)> spoil;
    std::string message;
  } rows[] = {
      {[](Args& a) { a.T = -1; }, "l2norm.fwd: T: expected at least 0, got -1"},
      {[](Args& a) { a.N = -1; }, "l2norm.fwd: N: expected at least 0, got -1"},
      {[](Args& a) { a.H = 0; }, "l2norm.fwd: H: expected at least 1, got 0"},
      {[](Args& a) { a.K = 2048; }, "l2norm.fwd: K: expected a value in [1, 1024], got 2048"},
      {[](Args& a) { a.x = nullptr; }, "l2norm.fwd: x: expected a device pointer, got null"},
      {[](Args& a) { a.y = nullptr; }, "l2norm.fwd: y: expected a device pointer, got null"},
      {[](Args& a) { a.x = memory + 1; },
       "l2norm.fwd: x: expected an address that is a multiple of 2 bytes, got remainder 1"},
  };
  for (const auto& row : rows) {
    Args args{.x = memory, .y = memory, .T = 4, .N = 1, .H = 2, .K = 64};
    row.spoil(args);
    EXPECT_EQ(runtime::error_of([&] { fwd(args, nullptr); }), row.message);
  }
  EXPECT_NO_THROW(fwd({.H = 1, .K = 64}, nullptr));
}

}  // namespace
}  // namespace deltagauge::kernels::l2norm
