#include "reference/staging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/half.h"
#include "core/inputs.h"
#include "core/op.h"
#include "reference/rounding.h"

namespace deltagauge::reference {
namespace {

constexpr const char* kSmall[] = {"gdn/fwd/len=70+0+5,cap=90,HK=1,HV=2,K=16,V=24/bf16/h0=normal=1",
                                  "gdn/fwd/len=70+0+5,cap=90,HK=1,HV=2,K=16,V=24/bf16/gdtype=bf16/raw_gate=on/l2norm=on",
                                  "l2norm/fwd/len=9+3,cap=20,HK=2,K=24/f16", "gate/fwd/len=9+3,cap=20,HV=3/bf16"};

TEST(Staging, names_are_unique_and_found) {
  std::set<std::string_view> seen;
  for (const Staging& s : stagings()) {
    EXPECT_TRUE(seen.insert(s.name).second) << s.name;
    EXPECT_EQ(&staging(s.name), &s);
  }
  EXPECT_THROW(staging("chunk63"), Error);
}

TEST(Staging, every_staging_returns_the_outputs_of_its_op_and_leaves_rows_past_the_end_nan) {
  for (const char* id : kSmall) {
    const Case c = parse_id(id);
    const Tensors inputs = make_inputs(c);
    for (const Staging& s : stagings()) {
      if (s.op != c.problem.op) continue;
      const Tensors outputs = run(c.problem, inputs, s, false);
      const auto specs = op_info(c.problem.op).outputs(c.problem);
      ASSERT_EQ(outputs.size(), specs.size());
      for (const TensorSpec& spec : specs) {
        const Tensor& t = get(outputs, spec.name);
        EXPECT_EQ(t.dtype(), spec.dtype);
        EXPECT_EQ(t.shape(), spec.shape);
        const std::int64_t active = spec.token_dim == 0 ? c.problem.tokens() * t.numel() / t.dim(0) : t.numel();
        for (std::int64_t i = 0; i < t.numel(); ++i)
          ASSERT_EQ(std::isfinite(t.load(i)), i < active) << s.name << " " << spec.name << "[" << i << "]";
      }
    }
  }
}

TEST(Staging, an_empty_sequence_passes_its_state_through) {
  const Case c = parse_id(kSmall[0]);
  const Tensors inputs = make_inputs(c);
  for (const char* name : {"recurrent.f32", "chunk64.io", "chunk64.f64"}) {
    const Tensors outputs = run(c.problem, inputs, staging(name), false);
    EXPECT_TRUE(bitwise_equal(rows(get(outputs, "final_state"), 1, 1), rows(get(inputs, "initial_state"), 1, 1))) << name;
  }
}

TEST(Staging, taps_have_their_shapes_and_the_first_S_is_the_initial_state) {
  const Case c = parse_id(kSmall[0]);
  const Tensors inputs = make_inputs(c);
  const Tensors taps = run(c.problem, inputs, staging("chunk64.io"), true);
  EXPECT_EQ(get(taps, "Ainv").shape(), (Shape{3, 2, 64, 64}));  // chunks 64, 6 and 5
  EXPECT_EQ(get(taps, "S").shape(), (Shape{3, 2, 24, 16}));
  EXPECT_EQ(get(taps, "v_new").shape(), (Shape{90, 2, 24}));
  EXPECT_EQ(get(taps, "g_cum").shape(), (Shape{90, 2}));
  EXPECT_TRUE(bitwise_equal(rows(get(taps, "S"), 0, 1), rows(get(inputs, "initial_state"), 0, 1)));
  EXPECT_TRUE(bitwise_equal(rows(get(taps, "S"), 2, 1), rows(get(inputs, "initial_state"), 2, 1)));
  const Tensor &Ainv = get(taps, "Ainv"), &g = get(inputs, "g"), &g_cum = get(taps, "g_cum");
  for (std::int64_t i = 0; i < 64; ++i)  // second chunk: 6 rows, the identity below
    for (std::int64_t j = i < 6 ? i : 0; j < 64; ++j) ASSERT_EQ(Ainv.at({1, 0, i, j}), i == j);
  EXPECT_EQ(g_cum.at({65, 1}), g.at({64, 1}) + g.at({65, 1}));
}

TEST(Staging, cut_operands_are_tf32_numbers_and_scaled_by_kTf32Up) {
  std::vector<float> x{1, 1 + 0x1p-10f, 1 + 0x1.fffp-11f, -3.14159f, 1e-39f, -0.0f, INFINITY}, lo{1};
  const std::vector<float> before = x;
  round_store(Store::tf32_cut, DType::f16, std::span<float>(x), lo);
  for (std::size_t i = 0; i < x.size(); ++i) EXPECT_EQ(x[i], truncate_tf32(before[i] * kTf32Up)) << before[i];
  EXPECT_TRUE(lo.empty());
  EXPECT_EQ(name(Store::tf32_cut), "tf32_cut");
  EXPECT_EQ(store_format(Store::tf32_cut, DType::f16), DType::f32);
  EXPECT_EQ(without_range_limits(staging("chunk_sm90.plain"), DType::f16).resid, Store::tf32_cut);
  const Case c = parse_id("gdn/fwd/len=70,HK=1,HV=2,K=16,V=24/f16/h0=normal=1");
  const Tensors taps = run(c.problem, make_inputs(c), staging("chunk_sm90.plain"), true);
  for (const char* tap : {"Ainv", "resid", "v_new"})
    for (const double value : to_f64(get(taps, tap))) ASSERT_EQ(value, truncate_tf32(static_cast<float>(value))) << tap;
}

TEST(Staging, ranges_tell_overflow_flushes_and_headroom) {
  const Case c = parse_id("gdn/fwd/len=80,HK=1,HV=1,K=16,V=16/f16/gate=mild/v=normal=1e-6/h0=normal=200000");
  Ranges ranges;
  run(c.problem, make_inputs(c), staging("chunk64.io"), false, &ranges);
  const Range& S = ranges.at("S");
  EXPECT_EQ(S.format, DType::f16);
  EXPECT_EQ(S.count, 2 * 16 * 16);
  EXPECT_GT(S.overflows, 0);
  EXPECT_LT(S.headroom_bits(), 0);
  EXPECT_GE(S.max_exponent(), 16);
  const Range& Ainv = ranges.at("Ainv");
  EXPECT_EQ(Ainv.overflows, 0);
  EXPECT_EQ(Ainv.max_abs, 1);
  EXPECT_EQ(Ainv.headroom_bits(), std::log2(65504.0));
  const Case tiny = parse_id("gdn/fwd/len=16,HK=1,HV=1,K=16,V=16/f16/gate=none/v=normal=1e-7");
  Ranges small;
  run(tiny.problem, make_inputs(tiny), staging("chunk16.io"), false, &small);
  EXPECT_GT(small.at("v_new").flushed, 0);
  EXPECT_GT(small.at("v_new").subnormals, 0);
}

TEST(Staging, bad_requests_are_errors) {
  const Case c = parse_id(kSmall[0]);
  Tensors inputs = make_inputs(c);
  EXPECT_THROW(run(c.problem, inputs, staging("gate.f32"), false), Error);
  Tensors missing = inputs;
  missing.erase("beta");
  EXPECT_THROW(run(c.problem, missing, staging("chunk64.io"), false), Error);
  inputs["v"] = Tensor(DType::bf16, {90, 2, 23});
  EXPECT_THROW(run(c.problem, inputs, staging("chunk64.io"), false), Error);
  const Case f32 = parse_id("gdn/fwd/len=8,HK=1,HV=1,K=8,V=8/f32");
  EXPECT_THROW(run(f32.problem, make_inputs(f32), staging("chunk64.io.tc"), false), Error);
}

}  // namespace
}  // namespace deltagauge::reference
