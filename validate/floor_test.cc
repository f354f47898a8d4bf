#include "validate/floor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/inputs.h"
#include "oracle/oracle.h"
#include "reference/staging.h"
#include "validate/context.h"

namespace deltagauge::validate {
namespace {

using reference::staging;

std::vector<double> floor_of(const Problem& p, const Tensors& inputs, std::string_view rounding, std::string_view tensor,
                             const Shape& shape) {
  return rounding_floor(p, inputs, staging(rounding), tensor, rows_of(p, tensor, shape));
}
Tensor doubled(const Tensor& t) {
  Tensor out = t;
  for (std::int64_t i = 0; i < t.numel(); ++i) out.store(i, 2 * t.load(i));
  return out;
}

TEST(Floor, IsZeroWhereValuesAndStateAreZero) {
  const Case c = parse_id("gdn/fwd/len=9+3,HK=1,HV=2,K=16,V=8/f32/v=normal=0/h0=zero/seed=1");
  const Tensors inputs = make_inputs(c);
  for (const double f : floor_of(c.problem, inputs, "recurrent.f32", "o", {12, 2, 8})) EXPECT_EQ(f, 0);
  for (const double f : floor_of(c.problem, inputs, "recurrent.f32", "final_state", {2, 2, 8, 16})) EXPECT_EQ(f, 0);
}

TEST(Floor, ScalesWithValuesAndState) {
  const Case c = parse_id("gdn/fwd/len=9+3,HK=1,HV=2,K=16,V=8/f32/h0=normal=1/seed=1");
  const Tensors once = make_inputs(c);
  Tensors twice = once;
  for (const char* name : {"v", "initial_state"}) twice[name] = doubled(once.at(name));
  const auto a = floor_of(c.problem, once, "chunk64.f32", "o", {12, 2, 8});
  const auto b = floor_of(c.problem, twice, "chunk64.f32", "o", {12, 2, 8});
  for (std::size_t row = 0; row < a.size(); ++row) EXPECT_EQ(2 * a[row], b[row]) << row;
}

TEST(Floor, IsZeroPastTheActiveEndAndFiniteUnderAnyGate) {
  for (const std::string gate : {"edge", "edge/raw_gate=on", "edge/raw_gate=on/transform=bounded"}) {
    const Case c = parse_id("gdn/fwd/len=40+3,HK=1,HV=2,K=16,V=8,cap=50/f32/h0=normal=1/seed=1/gate=" + gate);
    const Tensors inputs = make_inputs(c);
    const auto floor = floor_of(c.problem, inputs, "chunk64.f32", "o", {50, 2, 8});
    for (std::size_t row = 0; row < floor.size(); ++row) {
      EXPECT_TRUE(std::isfinite(floor[row])) << gate << " " << row;
      EXPECT_EQ(floor[row] == 0, row >= 86) << gate << " " << row;
    }
  }
}

// A gate that closes leaves nothing of the tokens before it, whatever it was: later tokens get no budget for its size.
TEST(Floor, DoesNotGrowWithAGateThatCloses) {
  const auto at = [](const char* gate) {
    const Case c = parse_id("gdn/fwd/len=40,HK=1,HV=1,K=16,V=8/f32/chunk=40/h0=normal=1/seed=1/g[5,0]=" + std::string(gate));
    const Tensors inputs = make_inputs(c);
    std::vector<std::vector<double>> floors;
    for (const auto& [tensor, shape] :
         {std::pair<const char*, Shape>{"o", {40, 1, 8}}, {"u", {40, 1, 8}}, {"Ainv", {1, 1, 40, 40}}})
      floors.push_back(floor_of(c.problem, inputs, "chunk64.f32", tensor, shape));
    return floors;
  };
  const auto closed = at("-800");
  EXPECT_EQ(at("-1e38"), closed);
  EXPECT_EQ(at("-inf"), closed);
  for (const auto& floor : closed)
    for (std::size_t row = 6; row < floor.size(); ++row) EXPECT_GT(floor[row], 0) << row;
}

struct Setting {
  const char* axes;
  bool reached = false;  // neighbouring keys are parallel, so the bound is met beside the diagonal
};
class FloorIn : public testing::TestWithParam<Setting> {
 protected:
  Case test(const char* io) const {
    return parse_id("gdn/fwd/len=70+1+20,HK=1,HV=2,K=64,V=64/" + std::string(io) + "/" + GetParam().axes + "/seed=5");
  }
};

// The floor is one standard deviation of the f32 recurrence: in the mean over rows it covers what that loses.
TEST_P(FloorIn, CoversTheF32RecurrenceInTheMean) {
  const SweepCase test{.test = this->test("f32"), .name = {}, .note = {}, .checks = {}, .ceilings = {}};
  const Problem& p = test.test.problem;
  const Tensors inputs = make_inputs(test.test);
  const Tensors got = reference::run(p, inputs, staging("recurrent.f32"), false);
  const Tensors want = oracle::answer(p, inputs, {.precision = oracle::Precision::f64}).outputs;
  for (const char* name : {"o", "final_state"}) {
    const Tensor& right = want.at(name);
    const Rows rows = rows_of(p, name, right.shape());
    const auto floor = rounding_floor(p, inputs, staging("recurrent.f32"), name, rows);
    const auto a = to_f64(got.at(name)), b = to_f64(right);
    double error = 0, covered = 0;
    for (std::size_t j = 0; j < a.size(); ++j) error += (a[j] - b[j]) * (a[j] - b[j]);
    for (const double f : floor) covered += f * f;
    EXPECT_LE(error, covered) << name;
  }
}

// Beside 16-bit storage it is nothing, so it lets no fault of a 16-bit kernel pass.
TEST_P(FloorIn, IsBelowAHundredthOfTheBudgetOf16BitStorage) {
  const SweepCase test{.test = this->test("bf16"), .name = {}, .note = {}, .checks = {}, .ceilings = {}};
  const Tensors inputs = make_inputs(test.test);
  Context context(test, inputs, oracle::Precision::f64);
  for (const char* name : {"o", "final_state"}) {
    const Yardstick& yard = context.output("chunk64.io", name);
    const auto floor = rounding_floor(context.problem(), inputs, staging("chunk64.io"), name, yard.rows);
    double floors = 0, budgets = 0;
    for (const double f : floor) floors += f * f;
    for (const double b : yard.budget.row) budgets += b * b;
    EXPECT_LE(1e4 * floors, budgets) << name;
  }
}

TEST_P(FloorIn, TheInverseBoundHoldsForTheExactInverse) {
  const Case c = test("bf16");
  const Tensors inputs = make_inputs(c);
  const Tensor Ainv = oracle::answer(c.problem, inputs, {.precision = oracle::Precision::f64, .taps = true}).taps.at("Ainv");
  const Rows rows = rows_of(c.problem, "Ainv", Ainv.shape());
  const auto bound = inverse_bound(c.problem, inputs, rows);
  const double gamma = 64 * unit_roundoff(DType::f64) / (1 - 64 * unit_roundoff(DType::f64));  // of a sum of 64 in f64
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i)
      for (std::int64_t j = 0; j < rows.width; ++j) {
        const std::int64_t at = (s.first + i * s.stride) * rows.width + j;
        const double limit = bound[static_cast<std::size_t>(at)], value = std::abs(Ainv.load(at));
        EXPECT_LE(value, limit * (1 + gamma) + gamma) << at;
        if (j == i - 1 && GetParam().reached) {
          EXPECT_GE(value * (1 + gamma) + gamma, limit) << at;
        }
      }
}
INSTANTIATE_TEST_SUITE_P(All, FloorIn,
                         testing::Values(Setting{"gate=strong/h0=normal=1"}, Setting{"gate=none/h0=zero"},
                                         Setting{"gate=mild/keys=rho=0.9/h0=normal=1"},
                                         Setting{"gate=constant=-0.001/keys=repeated/beta=const=0.835/h0=zero", true},
                                         Setting{"gate=model/h0=normal=100"}, Setting{"gate=model/raw_gate=on/h0=normal=1"},
                                         Setting{"gate=strong/raw_gate=on/transform=bounded/h0=normal=1"},
                                         Setting{"gate=mild/keys=alternating/h0=normal=1", true}));

class DecodeFloorIn : public testing::TestWithParam<const char*> {
 protected:
  SweepCase test(const char* dtypes) const {
    const std::string id = "gdn_decode/fwd/len=1x12,HK=2,HV=4,K=64,V=64/" + std::string(dtypes) + "/" + GetParam() +
                           "/slots=20/idx=holes=1/has=mixed/seed=5";
    return {.test = parse_id(id), .name = {}, .note = {}, .checks = {}, .ceilings = {}};
  }
};

TEST_P(DecodeFloorIn, CoversF32InTheMeanAndIsNothingBeside16BitStorage) {
  for (const auto& [dtypes, share] : {std::pair{"f32/state=f32", 1.0}, {"bf16/state=bf16", 1e4}}) {
    const SweepCase test = this->test(dtypes);
    const Tensors inputs = make_inputs(test.test);
    Context context(test, inputs, oracle::Precision::f64);
    const Tensors got = reference::run(context.problem(), inputs, staging("gdn_decode.f32"), false);
    for (const char* name : {"o", "final_state"}) {
      const Yardstick& yard = context.output("gdn_decode.f32", name);
      const auto floor = rounding_floor(context.problem(), inputs, staging("gdn_decode.f32"), name, yard.rows);
      double error = 0, floors = 0, budgets = 0;
      for (const Series& s : yard.rows.series)
        for (std::int64_t i = 0; i < s.count; ++i)
          for (std::int64_t j = 0, at = (s.first + i * s.stride) * yard.rows.width; j < yard.rows.width; ++j, ++at)
            error += std::pow(got.at(name).load(at) - yard.want->load(at), 2);
      for (const double f : floor) floors += f * f;
      for (const double b : yard.budget.row) budgets += b * b;
      if (share == 1) {
        EXPECT_LE(error, floors) << name;
      } else {
        EXPECT_LE(share * floors, budgets) << name;
      }
    }
  }
}
INSTANTIATE_TEST_SUITE_P(All, DecodeFloorIn,
                         testing::Values("gate=mild/h0=normal=1", "gate=model/h0=zero", "gate=strong/h0=normal=100",
                                         "gate=mild/kscale=0.001/h0=normal=1",
                                         "gate=mild/beta=wide/neg_eigval=on/keys=repeated/h0=normal=1"));

}  // namespace
}  // namespace deltagauge::validate
