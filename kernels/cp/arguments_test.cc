// Bad arguments of the device calls: found before anything touches a device, so no GPU is needed.
#include <functional>

#include "kernels/cp/compose.h"
#include "kernels/cp/summarise.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::cp {
namespace {

using runtime::error_of;

alignas(256) char memory[512];  // stands for device memory; never read

ComposeArgs good() {
  const auto* ints = reinterpret_cast<const std::int32_t*>(memory);
  auto* floats = reinterpret_cast<float*>(memory);
  return {.published = ints,
          .source = ints,
          .fold = ints,
          .bias = floats,
          .transition = floats,
          .own = floats,
          .gathered = floats,
          .entry = floats,
          .segments = 2,
          .fragments = 1,
          .slots = 2,
          .world = 2,
          .HV = 2,
          .K = 64,
          .V = 64};
}

TEST(Compose, BadArgumentsGiveAnErrorWithExpectedAndGot) {
  const struct {
    std::function<void(ComposeArgs&)> spoil;
    std::string compose, publish;
  } rows[] = {
      {[](ComposeArgs& a) { a.segments = -1; }, "segments: expected at least 0, got -1",
       "segments: expected at least 0, got -1"},
      {[](ComposeArgs& a) { a.world = 0; }, "world: expected at least 1, got 0", "world: expected at least 1, got 0"},
      {[](ComposeArgs& a) { a.K = 0; }, "K: expected at least 1, got 0", "K: expected at least 1, got 0"},
      {[](ComposeArgs& a) { a.source = nullptr; }, "source: expected a device pointer, got null",
       "source: expected a device pointer, got null"},
      {[](ComposeArgs& a) { a.bias = nullptr; }, "bias: expected a device pointer, got null",
       "bias: expected a device pointer, got null"},
      {[](ComposeArgs& a) { a.initial = reinterpret_cast<const float*>(memory + 2); },
       "initial: expected an address that is a multiple of 4 bytes, got remainder 2",
       "initial: expected an address that is a multiple of 4 bytes, got remainder 2"},
      {[](ComposeArgs& a) { a.entry = nullptr, a.own = nullptr; }, "entry: expected a device pointer, got null",
       "own: expected a device pointer, got null"},
      {[](ComposeArgs& a) { a.fold = nullptr, a.published = nullptr; }, "fold: expected a device pointer, got null",
       "published: expected a device pointer, got null"},
  };
  for (const auto& row : rows) {
    ComposeArgs args = good();
    row.spoil(args);
    EXPECT_EQ(error_of([&] { compose(args, nullptr); }), "cp.compose: " + row.compose);
    EXPECT_EQ(error_of([&] { publish(args, nullptr); }), "cp.publish: " + row.publish);
  }
  EXPECT_NO_THROW(compose({.HV = 1, .K = 64, .V = 64}, nullptr));  // nothing to do
  EXPECT_NO_THROW(publish({.HV = 1, .K = 64, .V = 64}, nullptr));
}

TEST(Summarise, BadArgumentsGiveAnErrorWithExpectedAndGot) {
  const gdn::Args span{.T = 64, .N = 2, .HK = 1, .HV = 2, .K = 64, .V = 64, .scale = 0.125f};
  auto* floats = reinterpret_cast<float*>(memory);
  const auto refusal = [&](gdn::Args args, Maps maps, void* workspace, std::string_view variant = "chunk_sm80") {
    return error_of([&] { summarise(variant, args, maps, workspace, nullptr); });
  };
  gdn::Args bad = span;
  bad.T = -1;
  EXPECT_EQ(refusal(bad, {floats, floats}, memory), "cp.summarise: T: expected at least 0, got -1");
  EXPECT_EQ(refusal(span, {nullptr, floats}, memory), "cp.summarise: bias: expected a device pointer, got null");
  EXPECT_EQ(refusal(span, {floats, floats + 1}, memory),
            "cp.summarise: transition: expected an address that is a multiple of 16 bytes, got remainder 4");
  EXPECT_EQ(refusal(span, {floats, floats}, nullptr), "cp.summarise: workspace: expected a device pointer, got null");
  EXPECT_EQ(refusal(span, {floats, floats}, memory), "gdn.fwd: q: expected a device pointer, got null");
  bad = span;
  bad.V = 32;
  EXPECT_EQ(refusal(bad, {floats, floats}, memory),
            "gdn.fwd: variant chunk_sm80: head sizes: expected K = V, 64 or 128, got K = 64, V = 32");
}

TEST(Summarise, TheWorkspaceHoldsZerosAnUnreadOutputAndTheOpsOwn) {
  const gdn::Args span{.T = 70, .N = 2, .HK = 1, .HV = 3, .K = 64, .V = 64, .scale = 0.125f};
  const std::size_t rows = 70 * 3 * 64 * 2, padded = (rows + 255) / 256 * 256;
  EXPECT_EQ(summarise_workspace("recurrent", span), 2 * padded);
  EXPECT_EQ(summarise_workspace("chunk_sm80", span), 2 * padded + gdn::workspace_bytes("chunk_sm80", span));
  EXPECT_EQ(summarise_workspace("auto", {.T = 0, .N = 0, .HK = 1, .HV = 1, .K = 64, .V = 64}), 0u);
}

}  // namespace
}  // namespace deltagauge::kernels::cp
