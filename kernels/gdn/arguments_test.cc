// Bad arguments of gdn::fwd: found before anything touches a device, so no GPU is needed.
#include <functional>
#include <limits>

#include "kernels/gdn/gdn.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::gdn {
namespace {

using runtime::error_of;

alignas(256) char memory[512];  // stands for device memory; never read

Args good() {
  void* p = memory;
  return {.q = p,
          .k = p,
          .v = p,
          .g = p,
          .beta = p,
          .initial_state = p,
          .o = p,
          .final_state = p,
          .workspace = p,
          .T = 64,
          .N = 2,
          .HK = 2,
          .HV = 4,
          .K = 64,
          .V = 64,
          .scale = 0.125f};
}

Args pool() {
  Args args = good();
  args.state_indices = reinterpret_cast<const std::int32_t*>(memory);
  args.has_initial_state = reinterpret_cast<const std::uint8_t*>(memory);
  args.slots = 3;
  args.slot_stride = args.HV * args.V * args.K;
  return args;
}

TEST(Fwd, BadArgumentsGiveAnErrorWithExpectedAndGot) {
  struct Row {
    std::string_view variant;
    std::function<void(Args&)> spoil;
    std::string message;
  };
  constexpr auto kNan = std::numeric_limits<float>::quiet_NaN();
  const Row rows[] = {
      {"fastest", [](Args&) {},
       "gdn variant: expected one of recurrent chunk_sm80 chunk_sm90 chunk_sm90_fused chunk_sm90_segments chunk_sm80_split "
       "auto, got 'fastest'"},
      {"recurrent", [](Args& a) { a.T = -1; }, "gdn.fwd: T: expected at least 0, got -1"},
      {"recurrent", [](Args& a) { a.N = -2; }, "gdn.fwd: N: expected at least 0, got -2"},
      {"recurrent", [](Args& a) { a.HK = 0; }, "gdn.fwd: HK: expected at least 1, got 0"},
      {"recurrent", [](Args& a) { a.HV = 0; }, "gdn.fwd: HV: expected at least 1, got 0"},
      {"recurrent", [](Args& a) { a.HV = 3; }, "gdn.fwd: HV: expected a multiple of HK = 2, got 3"},
      {"recurrent", [](Args& a) { a.T = 65; },
       "gdn.fwd: cu_seqlens: expected a device pointer, or T a multiple of N, got null with T = 65 and N = 2"},
      {"recurrent", [](Args& a) { a.N = 0; },
       "gdn.fwd: cu_seqlens: expected a device pointer, or T a multiple of N, got null with T = 64 and N = 0"},
      {"recurrent", [](Args& a) { a.scale = 0; }, "gdn.fwd: scale: expected a finite number other than 0, got 0"},
      {"recurrent", [](Args& a) { a.scale = kNan; }, "gdn.fwd: scale: expected a finite number other than 0, got nan"},
      {"recurrent", [](Args& a) { a.K = 512; },
       "gdn.fwd: variant recurrent: head sizes: expected K and V in [1, 256], got K = 512, V = 64"},
      {"chunk_sm80", [](Args& a) { a.io = DType::f32; },
       "gdn.fwd: variant chunk_sm80: io: expected one of bf16 f16, got f32"},
      {"recurrent", [](Args& a) { a.q = nullptr; }, "gdn.fwd: q: expected a device pointer, got null"},
      {"recurrent", [](Args& a) { a.k = nullptr; }, "gdn.fwd: k: expected a device pointer, got null"},
      {"recurrent", [](Args& a) { a.v = nullptr; }, "gdn.fwd: v: expected a device pointer, got null"},
      {"recurrent", [](Args& a) { a.g = nullptr; }, "gdn.fwd: g: expected a device pointer, got null"},
      {"recurrent", [](Args& a) { a.beta = nullptr; }, "gdn.fwd: beta: expected a device pointer, got null"},
      {"recurrent", [](Args& a) { a.o = nullptr; }, "gdn.fwd: o: expected a device pointer, got null"},
      {"recurrent", [](Args& a) { a.transform = Transform::softplus; },
       "gdn.fwd: dt_bias: expected a device pointer, got null"},
      {"recurrent", [](Args& a) { a.dt_bias = reinterpret_cast<const float*>(memory); },
       "gdn.fwd: transform: expected softplus or bounded beside A_log or dt_bias, got none"},
      {"chunk_sm80", [](Args& a) { a.A_log = reinterpret_cast<const float*>(memory); },
       "gdn.fwd: transform: expected softplus or bounded beside A_log or dt_bias, got none"},
      {"chunk_sm90",
       [](Args& a) {
         a.transform = Transform::softplus;
         a.dt_bias = reinterpret_cast<const float*>(memory);
         a.A_log = reinterpret_cast<const float*>(memory + 2);
       },
       "gdn.fwd: A_log: expected an address that is a multiple of 4 bytes, got remainder 2"},
      {"recurrent",
       [](Args& a) {
         a.transform = Transform::softplus;
         a.dt_bias = reinterpret_cast<const float*>(memory + 1);
       },
       "gdn.fwd: dt_bias: expected an address that is a multiple of 4 bytes, got remainder 1"},
      {"recurrent", [](Args& a) { a.transform = Transform::bounded, a.lower_bound = 1; },
       "gdn.fwd: lower_bound: expected a finite number <= 0, got 1"},
      {"recurrent", [](Args& a) { a.transform = Transform::bounded, a.lower_bound = kNan; },
       "gdn.fwd: lower_bound: expected a finite number <= 0, got nan"},
      {"recurrent", [](Args& a) { a.q = memory + 1; },
       "gdn.fwd: q: expected an address that is a multiple of 2 bytes, got remainder 1"},
      {"recurrent", [](Args& a) { a.g = memory + 2; },
       "gdn.fwd: g: expected an address that is a multiple of 4 bytes, got remainder 2"},
      {"recurrent", [](Args& a) { a.final_state = memory + 2; },
       "gdn.fwd: final_state: expected an address that is a multiple of 4 bytes, got remainder 2"},
      {"recurrent", [](Args& a) { a.cu_seqlens = reinterpret_cast<const std::int32_t*>(memory + 2); },
       "gdn.fwd: cu_seqlens: expected an address that is a multiple of 4 bytes, got remainder 2"},
      {"recurrent", [](Args& a) { a.tap_S = reinterpret_cast<float*>(memory); },
       "gdn.fwd: tap_S: expected null, since recurrent forms no chunks, got a pointer"},
      {"chunk_sm90", [](Args& a) { a.schedule = Schedule::persistent; },
       "gdn.fwd: variant chunk_sm90: schedule: expected automatic or static, got persistent"},
      {"chunk_sm80", [](Args& a) { a.k = memory + 2; },
       "gdn.fwd: k: expected an address that is a multiple of 16 bytes, got remainder 2"},
  };
  for (const Row& row : rows) {
    Args args = good();
    row.spoil(args);
    EXPECT_EQ(error_of([&] { fwd(row.variant, args, nullptr); }), row.message);
  }
}

TEST(Fwd, ABadStatePoolGivesAnErrorWithExpectedAndGot) {
  struct Row {
    std::string_view variant;
    std::function<void(Args&)> spoil;
    std::string message;
  };
  const std::string alone =
      "gdn.fwd: state_indices: expected a device pointer beside slots, slot_stride or has_initial_state, got null";
  const Row rows[] = {
      {"recurrent", [](Args& a) { a.state_indices = nullptr; }, alone},
      {"recurrent", [](Args& a) { a.state_indices = nullptr, a.slots = a.slot_stride = 0; }, alone},
      {"recurrent", [](Args& a) { a.state_indices = nullptr, a.has_initial_state = nullptr, a.slots = 0; }, alone},
      {"recurrent", [](Args& a) { a.slots = 1; }, "gdn.fwd: slots: expected at least 2, since slot 0 is reserved, got 1"},
      {"recurrent", [](Args& a) { --a.slot_stride; }, "gdn.fwd: slot_stride: expected at least HV V K = 16384, got 16383"},
      {"chunk_sm80", [](Args& a) { ++a.slot_stride; },
       "gdn.fwd: variant chunk_sm80: slot_stride: expected a multiple of 16 bytes, got 65540"},
      {"recurrent", [](Args& a) { a.initial_state = a.final_state = nullptr; },
       "gdn.fwd: final_state: expected the pool, initial_state itself, got null"},
      {"recurrent", [](Args& a) { a.final_state = nullptr; },
       "gdn.fwd: final_state: expected the pool, initial_state itself, got null"},
      {"recurrent", [](Args& a) { a.final_state = memory + 256; },
       "gdn.fwd: final_state: expected the pool, initial_state itself, got another address"},
      {"recurrent", [](Args& a) { a.state_indices = reinterpret_cast<const std::int32_t*>(memory + 1); },
       "gdn.fwd: state_indices: expected an address that is a multiple of 4 bytes, got remainder 1"},
  };
  for (const Row& row : rows) {
    Args args = pool();
    row.spoil(args);
    EXPECT_EQ(error_of([&] { fwd(row.variant, args, nullptr); }), row.message);
  }
  Args nobody = pool();
  nobody.T = nobody.N = 0;
  nobody.K = nobody.V = 128;  // which all variants take
  nobody.slot_stride = nobody.HV * nobody.V * nobody.K;
  for (const Variant& variant : variants()) EXPECT_NO_THROW(fwd(variant.name, nobody, nullptr)) << variant.name;
}

TEST(Fwd, NothingToDoIsNotAnError) {
  Args args{.HK = 1, .HV = 1, .K = 128, .V = 128, .scale = 1};
  for (const Variant& variant : variants()) EXPECT_NO_THROW(fwd(variant.name, args, nullptr)) << variant.name;
}

TEST(WorkspaceBytes, IsZeroForTheRecurrenceAndAnErrorWhereTheVariantDoesNotFit) {
  Args args = good();
  EXPECT_EQ(workspace_bytes("recurrent", args), 0u);
  args.K = 96;
  EXPECT_EQ(error_of([&] { workspace_bytes("chunk_sm80", args); }),
            "gdn.fwd: variant chunk_sm80: head sizes: expected K = V, 64 or 128, got K = 96, V = 64");
}

}  // namespace
}  // namespace deltagauge::kernels::gdn
