// The range driver: closed forms of split gates and f16 states by bisection, the limits of our own stagings, and rows that
// say which stage overflowed.
#include "validate/range.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>

#include "core/error.h"
#include "core/half.h"
#include "reference/staging.h"
#include "reports/json.h"
#include "validate/frontier.h"
#include "validate/planted.h"
#include "validate/run.h"
#include "validate/yardsticks.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

struct Ranges : testing::Test {
  Ranges() {
    omp_set_num_threads(1);  // one head a case: more would only wait for each other
    add_cpu_backends(registry);
    add_peer_backends(registry);
  }
  Result one(const std::string& quantity, const std::string& backend, const std::string& id) {
    return frontier(parse_id(id), registry.get(backend), find_quantity(quantity), draws);
  }
  reports::Report run(const std::string& id, const RangeOptions& options) {
    Sweep sweep{"", "test", "*", {}};
    sweep.cases.emplace_back().test = parse_id(id);
    reports::Report report;
    run_range(sweep, registry, options, report);
    return report;
  }
  Registry registry;
  Draws draws{oracle::Precision::f64};
};

constexpr const char* kBf16 = "gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/bf16/h0=normal=1/seed=5";
constexpr const char* kF16 = "gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/f16/h0=normal=1/seed=5";

std::string decimals(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3f", x);
  return text;
}

TEST_F(Ranges, BisectionGivesTheClosedFormsOfSplitGates) {
  const struct {
    const char *backend, *quantity, *limit;
  } rows[] = {
      {"split16.first.f32", "g", "5.915"}, {"split16.first.bf16", "g", "5.915"}, {"split16.middle.f32", "g", "11.090"},
      {"split16.first.f16", "g", "0.739"}, {"split64.before.f32", "g", "1.386"}, {"split8.first.f16", "g", "1.584"},
      {"split8.first.f32", "g", "12.675"},
  };
  for (const auto& row : rows) {
    const Result r = one(row.quantity, std::string("reference.peer.") + row.backend, kBf16);
    EXPECT_EQ(decimals(r.values.at("g.largest_without_overflow")), row.limit) << row.backend << " " << r.name;
    EXPECT_LE(r.values.at("g.largest_safe"), r.values.at("g.largest_without_overflow")) << row.backend;
    EXPECT_LT(r.values.at("g.largest_safe"), r.values.at("g.smallest_unsafe")) << row.backend;
  }
}

TEST_F(Ranges, FactorsWithTheRangeOfF32AreSafeUpToTheirClosedForm) {
  for (const char* backend : {"split16.first.f32", "split16.first.bf16", "split16.middle.f32"}) {
    const Result r = one("g", std::string("reference.peer.") + backend, kBf16);
    EXPECT_EQ(r.outcome, Outcome::pass);
    EXPECT_EQ(r.values.at("g.largest_safe"), r.values.at("g.largest_without_overflow")) << r.name;
  }
}

TEST_F(Ranges, AnF16StateIsSafeUpToTheLargestValueOfF16) {
  const Result r = one("h0", "reference.peer.state.f16", kBf16);
  EXPECT_EQ(round_f16(static_cast<float>(r.values.at("h0.largest_without_overflow"))), 65504) << r.name;
  EXPECT_FALSE(std::isfinite(round_f16(static_cast<float>(r.values.at("h0.smallest_unsafe"))))) << r.name;
  EXPECT_NE(r.name.find(" S: "), std::string::npos) << r.name;
}

TEST_F(Ranges, BothSidesOfAnEdgeAreCasesThatReproduceIt) {
  const Result r = one("g", "reference.peer.split16.first.f32", kBf16);
  EXPECT_EQ(parse_id(r.test).problem.gate.value, -r.values.at("g.largest_safe"));
  const auto at = r.name.find("gdn/fwd/");
  ASSERT_NE(at, std::string::npos) << r.name;
  const std::string unsafe = r.name.substr(at, r.name.find(' ', at) - at);
  EXPECT_EQ(parse_id(unsafe).problem.gate.value, -r.values.at("g.smallest_unsafe"));
  const RangeOptions options{.backend = "reference.peer.split16.first.f32", .frontiers = false};
  EXPECT_EQ(run(r.test, options).results.at(0).outcome, Outcome::pass);
  const Result broken = run(unsafe, options).results.at(0);
  EXPECT_EQ(broken.outcome, Outcome::fail);
  EXPECT_EQ(broken.reason.substr(0, 8), "decay_j:") << broken.reason;
  EXPECT_GT(broken.ranges.at("decay_j").overflows, 0);
  EXPECT_LT(broken.values.at("decay_j.headroom_bits"), 0);
}

TEST_F(Ranges, TheStagingsOfOurKernelsTakeAnyGate) {
  for (const char* id : {kBf16, kF16})
    for (const char* backend : {"chunk_sm80.plain", "chunk_sm80.split", "recurrent.f32"})
      for (const char* quantity : {"g", "sum_g"}) {
        const Result r = one(quantity, std::string("reference.as_kernel.") + backend, id);
        EXPECT_FALSE(r.values.contains(std::string(quantity) + ".smallest_unsafe")) << backend << " " << r.name << r.reason;
      }
}

TEST_F(Ranges, TheSameRunGivesTheSameRows) {
  const auto text = [&] {
    reports::Report report = run(kF16, {.backend = "reference.peer.split8.first.f16", .quantities = {"g", "beta"}});
    for (Result& r : report.results) r.seconds = 0;
    return reports::to_json(report);
  };
  const std::string first = text();
  EXPECT_EQ(text(), first);
  const reports::Report read = reports::parse_report(first, "first");
  ASSERT_EQ(read.results.size(), 3u);
  EXPECT_EQ(read.results[0].check, "range");
  EXPECT_EQ(read.results[1].check, "frontier");
  EXPECT_TRUE(read.results[1].values.contains("g.largest_safe"));
}

TEST_F(Ranges, AnOverflowIsNoFaultWhereTheRightOutputOverflowsToo) {
  const RangeOptions options{.backend = "reference.recurrent,reference.as_kernel.chunk_sm80.plain", .frontiers = false};
  const auto report = run("gdn/fwd/len=8,HK=1,HV=1,K=16,V=16/f16/h0=normal=1e+06/seed=5", options);
  ASSERT_EQ(report.results.size(), 2u);
  for (const Result& r : report.results) {
    EXPECT_EQ(r.outcome, Outcome::pass) << r.reason;
    EXPECT_GT(r.ranges.at("o").overflows, 0);
  }
}

// A backend that no emulator knows: outputs and intermediates are all there is to see.
TEST_F(Ranges, AKernelIsSeenByItsOutputsAndTaps) {
  bool spoil = false;
  Registry kernels;
  kernels.add(
      std::make_unique<PlantedBackend>("kernel", "chunk64.io", [&](const Problem& p, const Tensors& inputs, bool taps) {
        Tensors got = reference::run(p, inputs, reference::staging("chunk64.io"), taps);
        if (spoil && taps) got["v_new"].set({3, 0, 5}, HUGE_VAL);
        return got;
      }));
  Sweep sweep{"", "test", "*", {}};
  sweep.cases.emplace_back().test = parse_id(kBf16);
  for (const bool overflow : {false, true}) {
    spoil = overflow;
    reports::Report report;
    run_range(sweep, kernels, {.frontiers = false}, report);
    const Result& r = report.results.at(0);
    EXPECT_EQ(r.outcome, overflow ? Outcome::fail : Outcome::pass) << r.reason;
    EXPECT_EQ(r.reason.substr(0, 6), overflow ? "v_new:" : "") << r.reason;
    EXPECT_EQ(r.ranges.at("v_new").overflows, overflow ? 1 : 0);
    EXPECT_EQ(r.ranges.at("v_new").values, 64 * 16);
    for (const char* stage : {"Ainv", "P", "S", "resid", "o", "final_state"}) EXPECT_TRUE(r.ranges.contains(stage)) << stage;
  }
}

TEST_F(Ranges, AnEmulatorThatLosesItselfIsNoLicence) {
  const Case c = parse_id("gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/bf16/h0=zero/initial_state[*,*,*,*]=70000/seed=5");
  const Draws::Draw& draw = draws.get(c);
  const auto& staging = reference::staging("state.f16");
  for (const auto& [name, yardstick] : wide_yardsticks(c.problem, draw.inputs, draw.gold, staging))
    for (const double budget : yardstick.budget.row) EXPECT_TRUE(std::isfinite(budget)) << name;
  EXPECT_EQ(one("h0", "reference.peer.state.f16", kBf16).values.count("h0.smallest_unsafe"), 1u);
}

TEST_F(Ranges, AStartThatIsUnsafeFails) {
  const Result r = one("v", "reference.peer.doubling16.f16",
                       "gdn/fwd/len=64,HK=1,HV=1,K=64,V=16/bf16/gate=none/keys=repeated/beta=const=0.835/seed=5");
  EXPECT_EQ(r.outcome, Outcome::fail);
  EXPECT_FALSE(r.values.contains("v.largest_safe"));
  EXPECT_NE(r.reason.find("v: expected 1 to be safe"), std::string::npos) << r.reason;
}

TEST_F(Ranges, ACaseWithoutTokensAndStatesIsSkipped) {
  const auto report = run("gdn/fwd/len=0x2,HK=1,HV=1,K=16,V=16/bf16/final=off/seed=1", {.backend = "reference.recurrent"});
  ASSERT_EQ(report.results.size(), 1 + quantities().size());
  for (const Result& r : report.results) {
    EXPECT_EQ(r.outcome, Outcome::skip) << r.check << r.name;
    EXPECT_NE(r.reason.find("nothing to "), std::string::npos) << r.reason;
  }
}

TEST_F(Ranges, BothModesAreTakenOnceEach) {
  Sweep sweep{"", "test", "*", {}};
  for (const MathMode mode : {MathMode::fast, MathMode::precise}) {
    sweep.cases.emplace_back().test = parse_id(kBf16);
    sweep.cases.back().test.problem.math = mode;
  }
  take_both_modes(sweep);
  ASSERT_EQ(sweep.cases.size(), 2u);
  EXPECT_EQ(sweep.cases[0].test.problem.math, MathMode::precise);
  EXPECT_EQ(sweep.cases[1].test.problem.math, MathMode::fast);
}

TEST_F(Ranges, ListNamesEveryRowAndUnknownQuantitiesAreErrors) {
  Sweep sweep{"", "test", "*", {}};
  sweep.cases.emplace_back().test = parse_id(kBf16);
  const auto lines = list_range(sweep, registry, {.backend = "reference.recurrent", .quantities = {"v"}});
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0], to_id(sweep.cases[0].test) + " reference.recurrent range");
  EXPECT_EQ(lines[1], to_id(sweep.cases[0].test) + " reference.recurrent frontier v");
  EXPECT_THROW(list_range(sweep, registry, {.quantities = {"speed"}}), Error);
}

}  // namespace
}  // namespace deltagauge::validate
