// Range statistics and the schemes whose range ends early: which stage meets the end of which format, and that the same
// scheme without range limits meets none.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "core/inputs.h"
#include "reference/exponential.h"
#include "reference/staging.h"

namespace deltagauge::reference {
namespace {

Case constant_gate(double g, const std::string& more = "bf16") {
  Case c = parse_id("gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/" + more + "/seed=1");
  c.problem.gate = {"constant", -g, true};
  return c;
}

Ranges ranges_of(const Case& c, const Staging& s, Tensors* outputs = nullptr) {
  Ranges ranges;
  Tensors got = run(c.problem, make_inputs(c), s, false, &ranges);
  if (outputs) *outputs = std::move(got);
  return ranges;
}

bool finite(const Tensors& outputs) {
  for (const auto& [name, tensor] : outputs)
    for (const double x : to_f64(tensor))
      if (!std::isfinite(x)) return false;
  return true;
}

TEST(PeerStagings, have_names_of_their_own) {
  std::set<std::string_view> seen;
  for (const Staging& s : stagings()) seen.insert(s.name);
  for (const Staging& s : peer_stagings()) {
    EXPECT_TRUE(seen.insert(s.name).second) << s.name;
    EXPECT_EQ(&staging(s.name), &s);
  }
}

// 2^E / (s log2 e) nats a token, s rows between the anchor and the row furthest behind it.
struct Split {
  const char* staging;
  double end;  // E
  int rows;    // s
  const char* decimals;
};
constexpr Split kSplits[] = {
    {"split16.first.f32", 128, 15, "5.915"},  {"split16.first.bf16", 128, 15, "5.915"},
    {"split16.middle.f32", 128, 8, "11.090"}, {"split16.before.f32", 128, 16, "5.545"},
    {"split8.first.f32", 128, 7, "12.675"},   {"split64.before.f32", 128, 64, "1.386"},
    {"split16.first.f16", 16, 15, "0.739"},   {"split16.middle.f16", 16, 8, "1.386"},
    {"split8.first.f16", 16, 7, "1.584"},
};

TEST(PeerStagings, a_split_gate_overflows_at_its_closed_form_and_without_range_limits_nowhere) {
  for (const Split& row : kSplits) {
    const double limit = row.end * std::log(2.0) / row.rows, step = 0x1p-11;  // relative: a unit of the third decimal
    char text[32];
    std::snprintf(text, sizeof text, "%.3f", limit);
    EXPECT_EQ(std::string(text), row.decimals) << row.staging;
    const Staging& s = staging(row.staging);
    for (const double g : {limit * (1 - step), limit * (1 + step)}) {
      const Ranges met = ranges_of(constant_gate(g), s);
      const bool past = g > limit;
      EXPECT_EQ(met.at(s.gate.anchor == Anchor::middle ? "decay_i" : "decay_j").overflows > 0, past)
          << row.staging << " at " << g;
      EXPECT_EQ(met.at("decay").overflows, 0);
      Tensors outputs;
      EXPECT_FALSE(ranges_of(constant_gate(g), without_range_limits(s, DType::bf16), &outputs).contains("decay_j"));
      EXPECT_TRUE(finite(outputs)) << row.staging;
    }
  }
}

TEST(PeerStagings, an_f16_state_operand_ends_where_f16_does_and_without_range_limits_does_not) {
  for (const auto& [h0, past] : {std::pair{65519.0, false}, {65520.0, true}}) {
    const Case c = parse_id("gdn/fwd/len=8,HK=1,HV=1,K=16,V=16/bf16/h0=zero/initial_state[*,*,*,*]=" + std::to_string(h0));
    EXPECT_EQ(ranges_of(c, staging("state.f16")).at("S").overflows > 0, past) << h0;
    Tensors outputs;
    EXPECT_EQ(ranges_of(c, without_range_limits(staging("state.f16"), DType::bf16), &outputs).at("S").overflows, 0);
    EXPECT_TRUE(finite(outputs));
  }
}

TEST(PeerStagings, a_closed_gate_leaves_factors_without_end_finite) {
  Case c = constant_gate(1e4);
  Tensors outputs;
  ranges_of(c, without_range_limits(staging("split16.first.f32"), DType::bf16), &outputs);
  EXPECT_TRUE(finite(outputs));
}

TEST(FastExp, ex2_approx_is_within_its_bound_and_flushes_only_with_ftz) {
  for (float y = -160; y <= 0; y += 0x1.3p-3f) {
    const double right = std::exp2(static_cast<double>(y));
    const float kept = ex2_approx(y, false), flushed = ex2_approx(y, true);
    if (right >= 0x1p-126) {
      EXPECT_LE(std::fabs(kept - right), 0x1p-22 * right) << y;
      EXPECT_EQ(kept, flushed) << y;
    } else {
      EXPECT_EQ(kept, static_cast<float>(right)) << y;
      EXPECT_EQ(flushed, 0) << y;
    }
  }
  EXPECT_EQ(ex2_approx(0, true), 1);
}

TEST(FastExp, flushed_decays_are_counted_in_fast_mode_alone) {
  const Case precise = constant_gate(1.4);  // exp(-1.4 x 64) is subnormal in f32
  Case fast = precise;
  fast.problem.math = MathMode::fast;
  const Range kept = ranges_of(precise, staging("ex2.ftz")).at("decay"),
              lost = ranges_of(fast, staging("ex2.ftz")).at("decay");
  EXPECT_EQ(kept.flushed, 0);
  EXPECT_GT(kept.subnormals, 0);
  EXPECT_EQ(lost.flushed, kept.subnormals);
  EXPECT_EQ(lost.subnormals, 0);
  EXPECT_EQ(ranges_of(fast, staging("chunk64.io")).at("decay").flushed, 0);
}

TEST(Ranges, decays_lost_to_zero_count_as_flushed_and_the_recurrence_has_them_too) {
  const Case c = constant_gate(104, "f32/h0=normal=1");
  for (const char* name : {"chunk64.f32", "recurrent.f32"}) {
    const Ranges met = ranges_of(c, staging(name));
    EXPECT_GT(met.at("decay").flushed, 0) << name;
    EXPECT_EQ(met.at("decay").zeros, 0) << name;
    EXPECT_EQ(met.at("o").count, 64 * 16) << name;
    EXPECT_EQ(met.at("final_state").count, 16 * 16) << name;
    EXPECT_GT(met.at("S").max_abs, 0) << name;
  }
}

}  // namespace
}  // namespace deltagauge::reference
