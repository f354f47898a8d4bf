// Every check on a right backend and on backends with one planted fault, case by case: what must be caught by which check,
// what must be skipped and with which reason.
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/staging.h"
#include "validate/checks/check.h"
#include "validate/planted.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome;

constexpr const char* kId = "gdn/fwd/len=20+0+37+1,HK=1,HV=2,K=16,V=8,cap=61/bf16/gate=mild/h0=normal=1/seed=3";
constexpr const char* kLattice = "gdn/fwd/len=20+70,HK=1,HV=2,K=16,V=8/f16/gate=none/data=lattice/h0=normal=1/seed=3";
constexpr const char* kPool =
    "gdn/fwd/len=20+1,HK=1,HV=2,K=16,V=8/bf16/gate=mild/h0=normal=1/slots=4/slot_pad=8/idx=permuted=1/seed=3";

Tensors answer(const Problem& p, const Tensors& inputs, bool taps) {
  return reference::run(p, inputs, reference::staging("chunk64.io"), taps);
}

struct Trial {
  SweepCase test;
  Context context;

  explicit Trial(std::string_view id)
      : test{.test = parse_id(id), .name = {}, .note = {}, .checks = {}, .ceilings = {}},
        context(test, make_inputs(test.test), oracle::Precision::f64) {}
  Verdict run(std::string_view check, const Backend& backend) { return find_check(check).run(context, backend); }
};

PlantedBackend right() { return {"right", "chunk64.io", answer}; }

// configs/cases/inverse.json, tie-in-the-inverse: answers that differ by 2^-22 of A are right, all of them.
TEST(Checks, ATieThatFallsTheOtherWayFailsNoRightAnswer) {
  Trial trial("gdn/fwd/len=130+65+1,HK=2,HV=4,K=64,V=64/f16/gate=mild/keys=rho=0.999/beta=near1/seed=43");
  int past_one_answer = 0;
  for (std::uint64_t draw = 100; draw < 106; ++draw) {
    const PlantedBackend other("right", "chunk_sm90.plain", [&](const Problem& p, const Tensors& inputs, bool taps) {
      auto staging = reference::staging("chunk_sm90.plain");
      staging.draw = draw;
      return reference::run(p, inputs, staging, taps);
    });
    const Verdict verdict = trial.run("accuracy", other);
    EXPECT_EQ(verdict.outcome, Outcome::pass) << verdict.reason;
    const Tensors got = outputs_of(other, trial.context.problem(), trial.context.inputs());
    const Yardstick& one = trial.context.output("chunk_sm90.plain", "final_state");
    past_one_answer += measure(get(got, "final_state"), *one.want, one.rows, one.budget).row_ratio > 1.5;
  }
  EXPECT_GT(past_one_answer, 0);
}

TEST(Checks, AreListedInOrder) {
  std::string names;
  for (const CheckInfo& info : checks()) names += std::string(info.name) + " ";
  EXPECT_EQ(names,
            "accuracy stages lattice guard determinism packing causal fast ladder.repeat ladder.permute ladder.separate "
            "ladder.slice ladder.dense ladder.suffix ladder.split ladder.graph ladder.load ladder.schedule ladder.cp ");
  EXPECT_THROW(find_check("speed"), Error);
}

TEST(Checks, ARightBackendPassesEachThatApplies) {
  const std::set<std::string_view> skipped{"lattice",     "ladder.dense", "ladder.split",   "ladder.graph",
                                           "ladder.load", "ladder.cp",    "ladder.schedule"};
  constexpr const char* kRaw = "gdn/fwd/len=20+0+37+1,HK=1,HV=2,K=16,V=8,cap=61/bf16/h0=normal=1/seed=3/raw_gate=on/";
  for (const std::string& id :
       {std::string(kId), kRaw + std::string("gate=model"), kRaw + std::string("transform=bounded/a_log=off/l2norm=on")}) {
    Trial trial(id);
    for (const Check* check : all_checks()) {
      const Verdict verdict = check->run(trial.context, right());
      const bool not_for_it = skipped.contains(check->info().name);
      EXPECT_EQ(verdict.outcome, not_for_it ? Outcome::skip : Outcome::pass)
          << check->info().name << " on " << id << ": " << verdict.reason;
    }
  }
  EXPECT_EQ(Trial(kLattice).run("lattice", right()).outcome, Outcome::pass);
  EXPECT_EQ(Trial(std::string(kLattice) + "/raw_gate=on").run("lattice", right()).outcome, Outcome::pass);
}

TEST(Checks, EachMemoryFaultIsCaughtByItsCheckAndTheReasonNamesTheTensor) {
  for (const MemoryFault& fault : memory_faults()) {
    const PlantedBackend backend("planted", "chunk64.io", answer, &fault);
    bool shown = false;
    for (const char* id : {kId, kLattice, kPool}) {
      Trial trial(id);
      if (!fault.shows(trial.context.problem())) continue;
      shown = true;
      const Verdict verdict = trial.run(fault.check, backend);
      EXPECT_EQ(verdict.outcome, Outcome::fail) << fault.name << " on " << id;
      EXPECT_NE(verdict.reason, "") << fault.name;
    }
    EXPECT_TRUE(shown) << fault.name;
  }
}

struct Skip {
  const char *check, *id, *reason;
};
class ChecksThatDoNotApply : public testing::TestWithParam<Skip> {};

TEST_P(ChecksThatDoNotApply, AreSkippedWithAReason) {
  Trial trial(GetParam().id);
  const Verdict verdict = trial.run(GetParam().check, right());
  EXPECT_EQ(verdict.outcome, Outcome::skip);
  EXPECT_NE(verdict.reason.find(GetParam().reason), std::string::npos) << verdict.reason;
}
INSTANTIATE_TEST_SUITE_P(All, ChecksThatDoNotApply,
                         testing::Values(Skip{"lattice", kId, "not a lattice case"},
                                         Skip{"packing", "gdn/fwd/len=4,K=16,V=8/bf16/seed=1", "one sequence"},
                                         Skip{"causal", "gdn/fwd/len=1+1,K=16,V=8/bf16/seed=1",
                                              "no sequence has two tokens"}));

class Bare : public PlantedBackend {  // no arena, no taps
 public:
  Bare() : PlantedBackend("bare", "chunk64.io", answer) {}
  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions&) const override {
    struct Plain : Plan {
      Tensors result;
      void run() override {}
      Tensors outputs() const override { return result; }
    };
    auto plan = std::make_unique<Plain>();
    plan->result = answer(problem, inputs, false);
    return plan;
  }
};

TEST(Checks, ABackendWithoutGuardsOrTapsIsSkippedNotPassed) {
  Trial trial(kId);
  EXPECT_EQ(trial.run("guard", Bare()).outcome, Outcome::skip);
  EXPECT_EQ(trial.run("stages", Bare()).outcome, Outcome::skip);
  EXPECT_EQ(trial.run("accuracy", Bare()).outcome, Outcome::pass);
}

TEST(Checks, AWrongTapFailsStagesThoughTheOutputsAreRight) {
  for (const char* name : {"Ainv", "S", "v_new"}) {
    const PlantedBackend backend("planted", "chunk64.io", [name](const Problem& p, const Tensors& inputs, bool taps) {
      Tensors out = answer(p, inputs, taps);
      if (taps) {
        Tensor& tap = out.find(name)->second;
        std::int64_t at = 0;  // of the largest element
        for (std::int64_t i = 0; i < p.V * p.K; ++i)
          if (std::abs(tap.load(i)) > std::abs(tap.load(at))) at = i;
        tap.store(at, -tap.load(at));
      }
      return out;
    });
    Trial trial(kId);
    EXPECT_EQ(trial.run("accuracy", backend).outcome, Outcome::pass);
    const Verdict verdict = trial.run("stages", backend);
    EXPECT_EQ(verdict.outcome, Outcome::fail);
    EXPECT_NE(verdict.reason.find(name), std::string::npos) << verdict.reason;
  }
}

TEST(Checks, ADoublingInverseFailsOnRepeatedKeysThoughItDeclaresItself) {
  const PlantedBackend backend("planted", "chunk64.io", [](const Problem& p, const Tensors& inputs, bool taps) {
    reference::Staging staging = reference::staging("chunk64.io");
    staging.solver = reference::Solver::doubling16_f16;
    return reference::run(p, inputs, staging, taps);
  });
  Trial trial("gdn/fwd/len=64,HK=1,HV=1,K=32,V=16/bf16/gate=constant=-0.001/keys=repeated/beta=const=0.835/seed=1");
  EXPECT_EQ(trial.run("accuracy", backend).outcome, Outcome::fail);
  EXPECT_EQ(trial.run("stages", backend).outcome, Outcome::fail);
}

TEST(Checks, ACeilingFailsAnAnswerThatIsWithinItsBudget) {
  Trial trial(kId);
  const double reached = trial.run("accuracy", right()).tensors.at("o").rel_l2;
  trial.test.ceilings = {{"o", "rel_l2", reached, "a peer"}};
  EXPECT_EQ(trial.run("accuracy", right()).outcome, Outcome::pass);
  trial.test.ceilings[0].value = reached / 2;
  const Verdict verdict = trial.run("accuracy", right());
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_NE(verdict.reason.find("a peer"), std::string::npos) << verdict.reason;
  trial.test.ceilings[0].metric = "speed";
  EXPECT_THROW(trial.run("accuracy", right()), Error);
}

TEST(Checks, TheOtherOpsPassTheirs) {
  for (const char* id :
       {"l2norm/fwd/len=5+0+9,HK=2,K=24,cap=16/bf16/seed=1", "l2norm/fwd/len=5+9,HK=2,K=24/f32/v=normal=0.001/seed=1",
        "gate/fwd/len=5+0+9,HV=3,cap=16/bf16/seed=1",
        "gate/fwd/len=5+9,HV=3,K=8/f32/transform=bounded/per=channel/v=normal=8/seed=1"}) {
    Trial trial(id);
    const std::string staging = trial.context.problem().op + ".f32";
    const PlantedBackend backend("right", staging, [staging](const Problem& p, const Tensors& inputs, bool taps) {
      return reference::run(p, inputs, reference::staging(staging), taps);
    });
    for (const char* check : {"accuracy", "guard", "determinism", "packing", "causal"}) {
      const Verdict verdict = trial.run(check, backend);
      EXPECT_EQ(verdict.outcome, Outcome::pass) << id << " " << check << ": " << verdict.reason;
    }
    EXPECT_EQ(trial.run("stages", backend).outcome, Outcome::skip);
  }
}

}  // namespace
}  // namespace deltagauge::validate
