// The fast check: both modes are judged, and what a flushing exponential loses is counted and fails where it matters.
#include "validate/checks/fast.h"

#include <gtest/gtest.h>

#include "core/inputs.h"
#include "reference/staging.h"
#include "validate/planted.h"
#include "validate/range.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome;

Verdict judge(const std::string& id, const Backend& backend) {
  SweepCase test{.test = parse_id(id), .name = {}, .note = {}, .checks = {}, .ceilings = {}};
  Context context(test, make_inputs(test.test), oracle::Precision::f64);
  return Fast().run(context, backend);
}
Verdict judge(const std::string& id, const char* backend) {
  Registry registry;
  add_cpu_backends(registry);
  add_peer_backends(registry);
  return judge(id, registry.get(backend));
}

// All that is left of h0 after 63 tokens of this gate is a subnormal decay times 1e30; nothing else is written.
constexpr const char* kFading =
    "gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/bf16/gate=constant=-1.4/h0=normal=1e+30/beta=const=0/seed=2";

constexpr const char* kLost =
    "o is 0 in fast mode alone: 2 of 64 tokens, sequence 0 head 0 token 62-63; final_state is 0 in fast mode alone: "
    "sequence 0 head 0; behind decays subnormal in f32: 3 of 64 tokens, sequence 0 head 0 token 0, 62-63";

TEST(FastCheck, FilesBothModesSideBySide) {
  const Verdict verdict =
      judge("gdn/fwd/len=70,HK=1,HV=1,K=16,V=16/bf16/h0=normal=1/seed=2", "reference.as_kernel.chunk64.io");
  EXPECT_EQ(verdict.outcome, Outcome::pass) << verdict.reason;
  for (const char* name : {"o", "o.precise", "final_state", "final_state.precise"})
    EXPECT_TRUE(verdict.tensors.contains(name));
  EXPECT_EQ(verdict.values.at("flushed_tokens"), 0);
  EXPECT_EQ(verdict.values.at("subnormal_tokens"), 0);
  EXPECT_EQ(verdict.note, "");
}

TEST(FastCheck, CountsTheTokensThatAFlushingExponentialLosesAndFailsAKernelThatDoesNotDeclareIt) {
  const PlantedBackend undeclared("undeclared", "chunk64.io", [](const Problem& p, const Tensors& inputs, bool taps) {
    return reference::run(p, inputs, reference::staging("ex2.ftz"), taps);
  });
  const Verdict verdict = judge(kFading, undeclared);
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  EXPECT_GT(verdict.values.at("flushed_tokens"), 0);
  EXPECT_GE(verdict.values.at("subnormal_tokens"), verdict.values.at("flushed_tokens"));
  EXPECT_NE(verdict.reason.find(kLost), std::string::npos) << verdict.reason;
  EXPECT_EQ(verdict.reason.find("precise"), std::string::npos) << verdict.reason;

  const Verdict declared = judge(kFading, "reference.peer.ex2.ftz");
  EXPECT_EQ(declared.outcome, Outcome::pass) << declared.reason;
  EXPECT_EQ(declared.values, verdict.values);
  EXPECT_EQ(declared.note, kLost);  // a pass names what was lost as well
}

TEST(FastCheck, NamesTokensByTheirPlaceInTheSequenceAndJoinsHeadsAndRuns) {
  const Verdict verdict = judge(
      "gdn/fwd/len=3+6,HK=1,HV=3,K=16,V=16/bf16/gate=none/h0=normal=1/g[5,0:2]=-95/g[8,0:2]=-100/g[7,2]=-90/g[0,2]=-90/"
      "seed=2",
      "reference.as_kernel.chunk64.io");
  EXPECT_EQ(verdict.outcome, Outcome::pass) << verdict.reason;
  EXPECT_EQ(verdict.values.at("flushed_tokens"), 0);
  // Of sequence 1: -95 at its token 2 and -100 at token 5, then nothing below 0; -90 at token 4 of head 2.
  EXPECT_EQ(verdict.note,
            "behind decays subnormal in f32: 9 of 9 tokens, sequence 0 head 2 token 0-2; "
            "sequence 1 head 2 token 0-5; sequence 1 head 0-1 token 2-5");
}

TEST(FastCheck, CountsTheDecaysBetweenTokensOfAChunk) {
  constexpr const char* kSteep = "gdn/fwd/len=70,HK=1,HV=2,K=16,V=16/bf16/gate=constant=-88.8/seed=2";
  for (const auto& [backend, tokens] : {std::pair{"reference.as_kernel.chunk64.io", 70}, {"reference.recurrent", 70}})
    EXPECT_EQ(judge(kSteep, backend).values.at("subnormal_tokens"), tokens) << backend;
  constexpr const char* kSeldom = "gdn/fwd/len=70,HK=1,HV=2,K=16,V=16/bf16/gate=constant=-5.9/seed=2";
  EXPECT_EQ(judge(kSeldom, "reference.recurrent").values.at("subnormal_tokens"), 0);  // no token's own decay is
  EXPECT_EQ(judge(kSeldom, "reference.as_kernel.chunk64.io").note,
            "behind decays subnormal in f32: 50 of 70 tokens, sequence 0 head 0-1 token 14-63");
}

TEST(FastCheck, PassesAnExponentialThatKeepsSubnormals) {
  for (const char* backend :
       {"reference.as_kernel.chunk64.io", "reference.as_kernel.chunk_sm80.plain", "reference.recurrent"}) {
    const Verdict verdict = judge(kFading, backend);
    EXPECT_EQ(verdict.outcome, Outcome::pass) << backend << ": " << verdict.reason;
    EXPECT_EQ(verdict.values.at("flushed_tokens"), 0) << backend;
  }
}

TEST(FastCheck, TakesTheOtherOpsToo) {
  EXPECT_EQ(judge("gate/fwd/len=20,HV=3/bf16/seed=1", "reference.as_kernel.gate.f32").outcome, Outcome::pass);
  EXPECT_EQ(judge("l2norm/fwd/len=20,HK=3,K=24/bf16/seed=1", "reference.as_kernel.l2norm.f32").outcome, Outcome::pass);
}

}  // namespace
}  // namespace deltagauge::validate
