// The same answer in f64, double-double, 113 and 237 bits: apart by no more than error_bound.h allows.
#include <gtest/gtest.h>

#include "core/inputs.h"
#include "oracle/error_bound.h"
#include "oracle/oracle.h"

namespace deltagauge::oracle {
namespace {

constexpr double kToF64 = 0x1p-52;  // both sides are rounded to double: half an ulp each

class Precisions : public testing::TestWithParam<const char*> {};

void expect_within(const Problem& p, const Answer& got, const Answer& oct, const Bounds& bounds, std::string_view what) {
  const std::vector<double> o = to_f64(get(got.outputs, "o")), want = to_f64(get(oct.outputs, "o"));
  std::int64_t compared = 0;
  for (std::size_t i = 0; i < o.size(); ++i) {
    ASSERT_TRUE(std::isfinite(o[i]) || !std::isfinite(want[i])) << what << " o[" << i << "]";
    if (!std::isfinite(want[i])) continue;  // not a sampled column, or past the active end
    EXPECT_LE(std::abs(o[i] - want[i]), bounds.o[i] + kToF64 * std::abs(want[i])) << what << " o[" << i << "] = " << want[i];
    ++compared;
  }
  EXPECT_GT(compared, 0);
  const std::vector<double> state = to_f64(get(got.outputs, "final_state")),
                            want_state = to_f64(get(oct.outputs, "final_state"));
  const auto K = static_cast<std::size_t>(p.K);
  for (std::size_t row = 0; row < bounds.state.size(); ++row) {
    double square = 0, size = 0;
    for (std::size_t i = row * K; i < (row + 1) * K; ++i) {
      square += (state[i] - want_state[i]) * (state[i] - want_state[i]);
      size += want_state[i] * want_state[i];
    }
    if (!std::isfinite(size)) continue;
    EXPECT_LE(std::sqrt(square), bounds.state[row] + kToF64 * std::sqrt(size)) << what << " state row " << row;
  }
}

TEST_P(Precisions, AgreeWithinTheErrorOfTheirArithmetic) {
  const Case c = parse_id(GetParam());
  const Tensors inputs = make_inputs(c);
  const auto in = [&](Precision precision, std::int64_t columns) {
    return answer(c.problem, inputs, {.precision = precision, .value_columns = columns});
  };
  const Answer oct = in(Precision::oct, 3);
  EXPECT_EQ(oct.used, Precision::oct);
  expect_within(c.problem, in(Precision::f64, 0), oct, gdn_bounds(c.problem, inputs, kF64), "f64");
  expect_within(c.problem, in(Precision::dd, 0), oct, gdn_bounds(c.problem, inputs, kDd), "dd");
  expect_within(c.problem, in(Precision::quad, 3), oct, gdn_bounds(c.problem, inputs, kQuad), "quad");
}

INSTANTIATE_TEST_SUITE_P(
    Gdn, Precisions,
    testing::Values("gdn/fwd/len=33+0+7,HK=1,HV=2,K=16,V=24/bf16/gate=mild/seed=1",
                    "gdn/fwd/len=40,HK=1,HV=1,K=64,V=32/bf16/gate=strong/h0=normal=1/seed=2",
                    "gdn/fwd/len=24,HK=1,HV=1,K=96,V=20/f16/gate=none/keys=repeated/beta=near1/seed=3",
                    "gdn/fwd/len=24,HK=1,HV=1,K=32,V=8/bf16/gate=none/keys=alternating/h0=normal=1/seed=4",
                    "gdn/fwd/len=48,HK=1,HV=1,K=16,V=8/f32/gate=edge/h0=normal=1/seed=5",
                    "gdn/fwd/len=20,HK=2,HV=4,K=16,V=8/bf16/gate=mixed/keys=rho=0.9/h0=normal=100/seed=6",
                    "gdn/fwd/len=20,HK=1,HV=1,K=32,V=8/bf16/gate=model/l2norm=on/seed=7",
                    "gdn/fwd/len=20,HK=1,HV=2,K=16,V=8/bf16/gate=model/raw_gate=on/l2norm=on/h0=normal=1/seed=8",
                    "gdn/fwd/len=40,HK=1,HV=1,K=16,V=8/f32/gate=edge/raw_gate=on/h0=normal=1/seed=9",
                    "gdn/fwd/len=40,HK=1,HV=1,K=16,V=8/f32/gate=edge/raw_gate=on/transform=bounded/h0=normal=1/seed=10",
                    "gdn/fwd/len=20,HK=1,HV=2,K=16,V=8/bf16/gate=model/raw_gate=on/transform=bounded/lb=-4/seed=11"));

}  // namespace
}  // namespace deltagauge::oracle
