// Bad arguments of gdn_decode::fwd: found before anything touches a device, so no GPU is needed.
#include <functional>
#include <limits>

#include "kernels/gdn_decode/gdn_decode.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::gdn_decode {
namespace {

alignas(16) char memory[64];  // stands for device memory; never read

TEST(Fwd, BadArgumentsGiveAnErrorWithExpectedAndGot) {
  const struct {
    std::function<void(Args&)> spoil;
    std::string message;
  } rows[] = {
      {[](Args& a) { a.B = -1; }, "gdn_decode.fwd: B: expected at least 0, got -1"},
      {[](Args& a) { a.HK = 0; }, "gdn_decode.fwd: HK: expected at least 1, got 0"},
      {[](Args& a) { a.HV = 3; }, "gdn_decode.fwd: HV: expected a multiple of HK = 2, got 3"},
      {[](Args& a) { a.V = 300; }, "gdn_decode.fwd: head sizes: expected K and V in [1, 256], got K = 64, V = 300"},
      {[](Args& a) { a.scale = 0; }, "gdn_decode.fwd: scale: expected a finite number other than 0, got 0"},
      {[](Args& a) { a.scale = std::numeric_limits<float>::infinity(); },
       "gdn_decode.fwd: scale: expected a finite number other than 0, got inf"},
      {[](Args& a) { a.slots = 0; }, "gdn_decode.fwd: slots: expected at least 1, got 0"},
      {[](Args& a) { a.slot_stride = 4 * 64 * 64 - 1; }, "gdn_decode.fwd: slot_stride: expected at least 16384, got 16383"},
      {[](Args& a) { a.packed_qkv = nullptr; }, "gdn_decode.fwd: packed_qkv: expected a device pointer, got null"},
      {[](Args& a) { a.raw_gate = nullptr; }, "gdn_decode.fwd: raw_gate: expected a device pointer, got null"},
      {[](Args& a) { a.raw_beta = memory + 2; },
       "gdn_decode.fwd: raw_beta: expected an address that is a multiple of 4 bytes, got remainder 2"},
      {[](Args& a) { a.A_log = nullptr; }, "gdn_decode.fwd: A_log: expected a device pointer, got null"},
      {[](Args& a) { a.dt_bias = nullptr; }, "gdn_decode.fwd: dt_bias: expected a device pointer, got null"},
      {[](Args& a) { a.pool = nullptr; }, "gdn_decode.fwd: pool: expected a device pointer, got null"},
      {[](Args& a) { a.state_indices = nullptr; }, "gdn_decode.fwd: state_indices: expected a device pointer, got null"},
      {[](Args& a) { a.o = memory + 1; },
       "gdn_decode.fwd: o: expected an address that is a multiple of 2 bytes, got remainder 1"},
  };
  for (const auto& row : rows) {
    float* p = reinterpret_cast<float*>(memory);
    Args args{.packed_qkv = p,
              .raw_gate = p,
              .raw_beta = p,
              .A_log = p,
              .dt_bias = p,
              .pool = p,
              .state_indices = reinterpret_cast<std::int32_t*>(memory),
              .o = p,
              .B = 3,
              .HK = 2,
              .HV = 4,
              .K = 64,
              .V = 64,
              .slots = 4,
              .slot_stride = 4 * 64 * 64,
              .scale = 1};
    row.spoil(args);
    EXPECT_EQ(runtime::error_of([&] { fwd(args, nullptr); }), row.message);
  }
  EXPECT_NO_THROW(fwd({.HK = 1, .HV = 1, .K = 64, .V = 64, .slots = 1, .slot_stride = 4096, .scale = 1}, nullptr));
}

}  // namespace
}  // namespace deltagauge::kernels::gdn_decode
