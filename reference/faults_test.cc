#include "reference/faults.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/gdn.h"

namespace deltagauge::reference {
namespace {

constexpr const char* kProblems[] = {
    "gdn/fwd/len=130+63+1+70,HK=2,HV=4,K=32,V=32/bf16/gate=strong/h0=normal=1",
    "gdn/fwd/len=130+63+1+70,HK=2,HV=4,K=32,V=32/f16/gate=mild/h0=normal=1",
    "gdn/fwd/len=100+90,HK=2,HV=4,K=32,V=32/bf16/gate=mild/h0=normal=200000",
    "gdn/fwd/len=130,HK=1,HV=2,K=32,V=32/f16/gate=none/keys=repeated/beta=const=0.835",
    "gdn/fwd/len=130,HK=1,HV=2,K=32,V=32/bf16/gate=mild/l2norm=on/kscale=0.001",
    "gdn/fwd/len=70+63,HK=1,HV=2,K=32,V=32/bf16/gate=model/raw_gate=on/h0=normal=1",
    "gdn/fwd/len=70+63,HK=1,HV=2,K=32,V=32/f16/gate=mild/raw_gate=on/transform=bounded/h0=normal=1",
};

// Largest row error of got over max(row error of emulator within 8 tokens, half a rounding of the row): above 1 leaves what
// the correct staging needs.
double worst_row(const Tensor& got, const Tensor& emulator, const Tensor& gold, std::int64_t row_stride, double u) {
  const std::int64_t width = gold.shape().back(), count = gold.numel() / width;
  const auto norm = [&](std::int64_t row, const Tensor* minus, const Tensor& of) {
    double sum = 0;
    for (std::int64_t i = row * width; i < (row + 1) * width; ++i)
      sum += std::pow(of.load(i) - (minus ? minus->load(i) : 0), 2);
    return std::isfinite(sum) ? std::sqrt(sum) : INFINITY;
  };
  std::vector<double> own(static_cast<std::size_t>(count));
  for (std::int64_t row = 0; row < count; ++row) own[static_cast<std::size_t>(row)] = norm(row, &gold, emulator);
  double worst = 0;
  for (std::int64_t row = 0; row < count; ++row) {
    double budget = 0;
    for (std::int64_t near = -8; near <= 8; ++near)
      if (const std::int64_t r = row + near * row_stride; r >= 0 && r < count)
        budget = std::max(budget, own[static_cast<std::size_t>(r)]);
    budget += u / 2 * norm(row, nullptr, gold);
    const double error = norm(row, &gold, got);
    if (error > 0) worst = std::max(worst, error / budget);
  }
  return worst;
}

TEST(Faults, there_are_enough_with_names_of_their_own) {
  EXPECT_GE(faults("gdn").size(), 24u);
  EXPECT_GE(faults("gdn_decode").size(), 16u);
  std::set<std::string_view> names;
  for (const char* op : {"gdn", "gdn_decode"})
    for (const Fault& f : faults(op)) {
      EXPECT_TRUE(names.insert(f.name).second) << f.name;
      EXPECT_EQ(fault(f.name).name, f.name);
    }
  EXPECT_TRUE(faults("gate").empty());
  EXPECT_THROW(fault("none"), Error);
}

TEST(Faults, each_leaves_the_error_of_the_correct_staging_wherever_it_must_show) {
  std::map<std::string_view, int> shown;
  for (const char* id : kProblems) {
    const Case c = parse_id(id);
    const Problem& p = c.problem;
    const Tensors inputs = make_inputs(c);
    Problem wide = p;
    wide.io = wide.state = DType::f64;
    const Tensors gold = gdn_recurrent(wide, inputs, Precision::f64);
    const Tensors correct = run(p, inputs, staging("chunk64.io"), false);
    for (const Fault& f : faults("gdn")) {
      if (!f.shows(p)) continue;
      const Tensors got = run_with_fault(p, inputs, staging("chunk64.io"), f);
      const double o = worst_row(get(got, "o"), get(correct, "o"), get(gold, "o"), p.HV, unit_roundoff(p.io));
      const double state = worst_row(get(got, "final_state"), get(correct, "final_state"), get(gold, "final_state"), 1,
                                     unit_roundoff(p.state));
      // A single element moves its row's norm little; numerics of one element are the judge's.
      if (f.name == "sign_flipped")
        EXPECT_FALSE(bitwise_equal(get(got, "o"), get(correct, "o")));
      else
        EXPECT_GT(std::max(o, state), 1) << f.name << " on " << id;
      ++shown[f.name];
    }
  }
  for (const Fault& f : faults("gdn")) EXPECT_GT(shown[f.name], 0) << f.name << " shows on no problem of the test";
}

TEST(Faults, a_run_without_its_condition_still_runs) {
  const Case c = parse_id("gdn/fwd/len=3,HK=1,HV=1,K=8,V=12/bf16/gate=none");
  const Tensors inputs = make_inputs(c);
  for (const Fault& f : faults("gdn")) {
    EXPECT_EQ(run_with_fault(c.problem, inputs, staging("chunk64.io"), f).size(), 2u) << f.name;
  }
}

}  // namespace
}  // namespace deltagauge::reference
