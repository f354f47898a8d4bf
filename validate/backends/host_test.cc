// The kernels' own code on the CPU, judged: small cases of each, with what is asynchronous done late and in any order, and
// with a look at races.
#include <gtest/gtest.h>

#include "core/error.h"
#include "core/inputs.h"
#include "validate/checks/check.h"
#include "validate/ladder/promises.h"
#include "validate/metrics.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome;

reports::Result judge(std::string_view id, const Backend& backend, std::string_view check) {
  RunOptions options;
  options.oracle = oracle::Precision::f64;
  return run_one({.test = parse_id(id), .name = {}, .note = {}, .checks = {}, .ceilings = {}}, backend, check, options);
}
Registry backends_that_run(std::string_view how) {
  Registry registry;
  add_host_backends(registry, how);
  return registry;
}
void expect_pass(std::string_view id, std::string_view backends, std::string_view check, std::string_view how) {
  const Registry registry = backends_that_run(how);
  for (const Backend* backend : registry.match(backends)) {
    const auto row = judge(id, *backend, check);
    EXPECT_EQ(row.outcome, Outcome::pass) << backend->name() << " " << check << " " << id << " " << how << ": "
                                          << row.reason;
  }
}

// Ragged, a partial tail, no tokens, two value heads a key head, a state to start from; both head sizes and io types.
TEST(HostBackends, GdnIsRightOnRaggedSequencesInEachModeAndHasNoRaces) {
  for (const char* how : {"mode=late,races=on", "mode=shuffled,races=on"}) {
    expect_pass("gdn/fwd/len=65+0+1+128,HK=1,HV=2,K=64,V=64/bf16/gate=mild/h0=normal=1/seed=1", "host.gdn.*", "accuracy",
                how);
    expect_pass("gdn/fwd/len=130,HK=1,HV=1,K=128,V=128/f16/gate=model/l2norm=on/seed=2", "host.gdn.*", "accuracy", how);
  }
}

TEST(HostBackends, GdnIsRightInTheOtherTypesAndOnAPool) {
  expect_pass("gdn/fwd/len=70,HK=1,HV=1,K=64,V=64/f16/gate=strong/seed=3", "host.gdn.*", "accuracy", "mode=early");
  expect_pass(
      "gdn/fwd/len=70+3,HK=1,HV=1,K=128,V=128/bf16/gate=mild/h0=normal=1/state=bf16/slots=4/slot_pad=8/idx=permuted=1/"
      "seed=3",
      "host.gdn.*", "accuracy", "mode=late");
  expect_pass("gdn/fwd/len=20+3,HK=1,HV=2,K=48,V=33/f32/gate=mild/fast/seed=3", "host.gdn.recurrent", "accuracy",
              "mode=late,races=on");
}

// The states of chunk_sm90 in blocks of two warpgroups where multiprocessors are few, else of one, beside the first kernel.
TEST(HostBackends, EachFormThatLaunchCodeChoosesIsRight) {
  for (const char* how : {"mode=late,races=on,sms=1", "mode=late,races=on,sms=16"})
    expect_pass("gdn/fwd/len=300,HK=1,HV=2,K=128,V=128/bf16/gate=mild/seed=4", "host.gdn.chunk_*", "accuracy", how);
  const Registry registry = backends_that_run("mode=late,races=on,sms=1");
  for (const Backend* backend : registry.match("host.gdn.*"))
    for (const Backend* schedule : promises_of(*backend)->schedules()) {
      const auto row = judge("gdn/fwd/len=65+0+1,HK=2,HV=2,K=64,V=64/bf16/gate=mild/seed=5", *schedule, "accuracy");
      EXPECT_EQ(row.outcome, Outcome::pass) << schedule->name() << ": " << row.reason;
    }
}

// One kernel or two, one warpgroup of states a block or two.
TEST(HostBackends, ChunkSm90AndItsFusedFormGiveTheSameBits) {
  for (const char* id : {"gdn/fwd/len=449+64+1,HK=1,HV=2,K=128,V=128/bf16/gate=mixed/l2norm=on/h0=normal=1/seed=7",
                         "gdn/fwd/len=193+0+64,HK=1,HV=1,K=64,V=64/f16/gate=strong/raw_gate=on/seed=8"}) {
    const Problem problem = parse_id(id).problem;
    const Tensors inputs = make_inputs(parse_id(id));
    std::vector<Tensors> answers;
    for (const char* how : {"mode=shuffled,sms=1", "mode=shuffled,sms=200"})
      for (const char* name : {"host.gdn.chunk_sm90", "host.gdn.chunk_sm90_fused"})
        answers.push_back(outputs_of(backends_that_run(how).get(name), problem, inputs));
    for (const Tensors& answer : answers)
      for (const char* tensor : {"o", "final_state"})
        EXPECT_EQ(bit_mismatch(problem, tensor, get(answer, tensor), get(answers[0], tensor),
                               rows_of(problem, tensor, get(answer, tensor).shape())),
                  "")
            << id;
  }
}

// Runs take the modes in turn where none is named, so that equal bits are those of all modes.
TEST(HostBackends, BitsMemoryAndTapsAreRight) {
  for (const std::string_view check : {"determinism", "guard", "stages", "packing", "causal"})
    expect_pass("gdn/fwd/len=65+0+3,HK=1,HV=2,K=64,V=64,cap=80/bf16/gate=mild/h0=normal=1/seed=6", "host.gdn.chunk_*", check,
                "mode=turns");
  expect_pass("gdn/fwd/len=65+0+63,HK=1,HV=2,K=64,V=64/bf16/gate=edge/h0=normal=1/data=lattice/scale=1/seed=7", "host.gdn.*",
              "lattice", "mode=turns");
}

TEST(HostBackends, TheOtherOpsAreRight) {
  for (const char* how : {"mode=late,races=on", "mode=shuffled,races=on"}) {
    expect_pass("gdn_decode/fwd/len=1x3,HK=1,HV=2,K=64,V=64/bf16/gate=mild/h0=normal=1/slots=9/idx=1+-1+8/seed=1",
                "host.gdn_decode", "accuracy", how);
    expect_pass("gdn_decode/fwd/len=1x2,HK=1,HV=2,K=100,V=70/f16/gate=mild/h0=normal=1/state=bf16/slots=4/seed=2",
                "host.gdn_decode", "accuracy", how);
    expect_pass("l2norm/fwd/len=5+3,HK=2,K=64/bf16/seed=1", "host.l2norm", "accuracy", how);
    expect_pass("gate/fwd/len=7+2,HV=2,K=16/f16/per=channel/transform=bounded/seed=1", "host.gate", "accuracy", how);
  }
}

TEST(HostBackends, WhatIsTooLargeIsRefusedWithAReason) {
  const Problem problem = parse_id("gdn/fwd/len=4096,HK=32,HV=32,K=128,V=128/bf16").problem;
  const std::string reason = backends_that_run("mode=late").get("host.gdn.chunk_sm90").unsupported(problem).value_or("");
  EXPECT_EQ(reason.rfind("size: expected at most ", 0), 0u) << reason;
}

TEST(HostBackends, ABadOptionIsAnError) {
  for (const std::string_view bad : {"mode=sideways", "mode=turns,sms=0", "fast", "mode=late,mode=early",
                                     "mode=turns,mode=late", "mode=turns,mode=turns", "sms=4,mode=late,sms=4"})
    EXPECT_THROW(backends_that_run(bad), Error) << bad;
}

}  // namespace
}  // namespace deltagauge::validate
