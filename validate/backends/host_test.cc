// The kernels' own code on the CPU, judged: small cases of each, with what is asynchronous done late and in any order, and
// with a look at races.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/inputs.h"
#include "kernels/gdn/segment.h"
#include "kernels/host/ops.h"
#include "reference/cp.h"
#include "validate/checks/check.h"
#include "validate/ladder/pieces.h"
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
// Of the backends those that take the case.
void expect_pass(std::string_view id, std::string_view backends, std::string_view check, std::string_view how) {
  const Registry registry = backends_that_run(how);
  auto matched = registry.match(backends);
  std::erase_if(matched, [&](const Backend* backend) { return backend->unsupported(parse_id(id).problem).has_value(); });
  EXPECT_FALSE(matched.empty()) << backends << " " << id;
  for (const Backend* backend : matched) {
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
    expect_pass("gdn/fwd/len=321+0+1+256,HK=1,HV=2,K=128,V=128/bf16/gate=mild/h0=normal=1/seed=1",
                "host.gdn.chunk_sm90_fused", "accuracy", how);
    // A partial chunk whose place has been used an even number of times: whoever missed its phases takes it for free.
    expect_pass("gdn/fwd/len=389+809,HK=1,HV=1,K=128,V=128/bf16/gate=mild/h0=normal=1/seed=3", "host.gdn.chunk_sm90*",
                "accuracy", how);
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

// Norms that are folded in: a row of k alone that must be scaled first, of q alone, both in one chunk, in a last chunk that
// is not full; and what taps make of them.
TEST(HostBackends, RowsThatAreScaledAreRightAndSoAreTheirTaps) {
  for (const auto& [check, how] :
       {std::pair{"accuracy", "mode=shuffled,races=on"}, std::pair{"stages", "mode=late,races=on"}})
    expect_pass(
        "gdn/fwd/len=130+40,HK=1,HV=2,K=128,V=128/bf16/gate=mild/l2norm=on/k[10,*,*]=1e+19/q[70,*,*]=3e+38/k[100,*,*]=1e+20/"
        "q[110,*,*]=-1e+20/k[169,*,*]=1e+19/seed=3",
        "host.gdn.chunk_sm90*", check, how);
}

// The states of chunk_sm90 behind the first kernel where multiprocessors are few, else beside it.
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

// Of all the backends and their schedules on many multiprocessors and on one.
void expect_same_bits(std::string_view id, std::initializer_list<const char*> backends) {
  const Problem problem = parse_id(id).problem;
  const Tensors inputs = make_inputs(parse_id(id));
  std::vector<Tensors> answers;
  for (const char* how : {"mode=shuffled,sms=1", "mode=shuffled,sms=200"})
    for (const char* name : backends) {
      const Registry registry = backends_that_run(how);
      const Backend& backend = registry.get(name);
      answers.push_back(outputs_of(backend, problem, inputs));
      for (const Backend* schedule : promises_of(backend)->schedules())
        answers.push_back(outputs_of(*schedule, problem, inputs));
    }
  for (const Tensors& answer : answers)
    for (const auto& [tensor, want] : answers[0])
      EXPECT_EQ(bit_mismatch(problem, tensor, get(answer, tensor), want, rows_of(problem, tensor, want.shape())), "") << id;
}

// Sequences that are shorter than a segment.
TEST(HostBackends, ChunkSm90AndItsSegmentsGiveTheSameBits) {
  for (const char* id : {"gdn/fwd/len=449+64+1,HK=1,HV=2,K=128,V=128/bf16/gate=mixed/l2norm=on/h0=normal=1/seed=7",
                         "gdn/fwd/len=193+0+64,HK=1,HV=1,K=128,V=128/bf16/gate=strong/raw_gate=on/seed=8"})
    expect_same_bits(id, {"host.gdn.chunk_sm90", "host.gdn.chunk_sm90_segments"});
}

// One multiprocessor holds 16 blocks, so there a static block takes all rows of a head from 48 (sequence, head) pairs on; on
// 200 it takes one row block. Sequences without tokens, without a slot or both, ahead of, between and behind the others.
TEST(HostBackends, RecurrentGivesTheSameBitsHoweverABlockTakesTheRows) {
  for (const char* id :
       {"gdn/fwd/len=0x9+1+2x3+17+0x30+33+0x5,HK=1,HV=1,K=32,V=70/bf16/gate=mild/l2norm=on/seed=1",
        "gdn/fwd/len=0x3+18+1+2x4+0x12+3+0x4,HK=1,HV=2,K=16,V=40/f16/gate=mild/h0=normal=1/seed=2",
        "gdn/fwd/len=0x3+18+1+2x4+0x12+3+0x4,HK=1,HV=2,K=16,V=40/f32/gate=mild/final=off/seed=3",
        "gdn/fwd/len=0+3+2+1+0x3+17+2x4+0x14,HK=1,HV=2,K=16,V=40/bf16/gate=mild/h0=normal=1/slots=40/idx=holes=3/has=mixed/"
        "seed=4"}) {
    expect_same_bits(id, {"host.gdn.recurrent"});
    expect_pass(id, "host.gdn.recurrent", "accuracy", "mode=late,races=on,sms=1");
  }
}

// Segments of 128 tokens: the same code on short sequences.
class ShortSegments : public testing::Test {
 protected:
  ShortSegments() { host::set_segment(128); }
  ~ShortSegments() override { host::set_segment(kernels::gdn::kSegment); }
};

// Of two segments the second starts from the state in which the first ends, and no map is applied to any.
TEST_F(ShortSegments, UpToTwoGiveTheBitsOfChunkSm90) {
  for (const char* id :
       {"gdn/fwd/len=256+129+128+0+1,HK=1,HV=2,K=64,V=64/bf16/gate=mixed/h0=normal=1/seed=1",
        "gdn/fwd/len=3+200,HK=1,HV=1,K=128,V=128/f16/gate=mild/l2norm=on/seed=2",
        "gdn/fwd/len=192+3,HK=1,HV=1,K=128,V=128/bf16/gate=mild/h0=normal=1/state=bf16/slots=4/slot_pad=8/idx=permuted=1/"
        "seed=3"})
    expect_same_bits(id, {"host.gdn.chunk_sm90", "host.gdn.chunk_sm90_segments"});
}

// One warpgroup a block on many multiprocessors and two on one; a sequence in a pool that its last segment writes; segments
// of more chunks than there are stages.
TEST_F(ShortSegments, AreRightInEachModeAndForm) {
  for (const char* how : {"mode=late,races=on,sms=1", "mode=shuffled,sms=200"}) {
    const auto pass = [&](const char* id) { expect_pass(id, "host.gdn.chunk_sm90_segments", "accuracy", how); };
    host::set_segment(128);
    pass("gdn/fwd/len=65+449+0+1+300,HK=1,HV=2,K=64,V=64/bf16/gate=model/h0=normal=1/seed=1");
    pass("gdn/fwd/len=600,HK=1,HV=1,K=128,V=128/bf16/gate=none/h0=normal=1/state=bf16/slots=3/slot_pad=8/seed=2");
    pass("gdn/fwd/len=3+450,HK=1,HV=1,K=128,V=128/f16/gate=none/l2norm=on/seed=3");
    // Rows that are scaled: in a chunk with a map, in one without, in a last chunk that is not full.
    pass(
        "gdn/fwd/len=3+450,HK=1,HV=2,K=128,V=128/bf16/gate=none/l2norm=on/k[40,*,*]=1e+19/q[300,*,*]=3e+38/k[452,*,*]=1e+20/"
        "seed=3");
    pass(
        "gdn/fwd/len=300+449+385,HK=1,HV=1,K=64,V=64/bf16/gate=none/h0=normal=1/slots=6/slot_pad=8/idx=holes=1/has=mixed/"
        "seed=4");
    host::set_segment(512);
    pass("gdn/fwd/len=1100,HK=1,HV=1,K=64,V=64/f16/gate=none/seed=5");
  }
}

// The same from calls of chunk_sm90, a segment each, and the reference's fold of what they end in.
TEST_F(ShortSegments, GiveTheBitsOfAFoldOfMapsByChunkSm90) {
  const Case whole = parse_id("gdn/fwd/len=700,HK=1,HV=2,K=64,V=64/bf16/gate=none/h0=normal=1/seed=9");
  const Problem& p = whole.problem;
  const Registry registry = backends_that_run("mode=late");
  const Tensors inputs = make_inputs(whole);
  const Tensors got = outputs_of(registry.get("host.gdn.chunk_sm90_segments"), p, inputs);
  const std::int64_t matrix = p.V * p.K;
  Tensor states(DType::f32, {2, p.HV, p.V, p.K}), entry = get(inputs, "initial_state"), identity = entry, zero = entry;
  for (std::int64_t i = 0; i < p.HV * matrix; ++i) {
    identity.store(i, i % matrix / p.K == i % p.K ? 1 : 0);
    zero.store(i, 0);
  }
  for (std::int64_t first = 0; first < p.lengths[0]; first += 128) {
    const Pieces piece{{0, first, std::min<std::int64_t>(128, p.lengths[0] - first)}};
    const Problem small = pieces_problem(p, piece);
    Tensors own = pieces_inputs(p, piece, small, inputs);
    const auto from = [&](const Tensor& state) {
      own["initial_state"] = state;
      return outputs_of(registry.get("host.gdn.chunk_sm90"), small, own);
    };
    const Tensors answer = from(entry);
    const Tensor& o = get(answer, "o");
    EXPECT_EQ(std::memcmp(o.data(), get(got, "o").data() + first * p.HV * p.V * 2, o.nbytes()), 0) << first;
    const Tensor bias = first == 0 ? get(answer, "final_state") : get(from(zero), "final_state");
    if (first + 128 >= p.lengths[0]) {
      EXPECT_TRUE(bitwise_equal(get(answer, "final_state"), get(got, "final_state")));
    }
    own["v"] = Tensor(p.io, own["v"].shape());
    const Tensor transition = get(from(identity), "final_state");
    Tensor map(DType::f32, {1, p.HV, p.V + p.K, p.K});
    for (std::int64_t h = 0; h < p.HV; ++h)
      for (std::int64_t i = 0; i < matrix; ++i) {
        map.store(2 * h * matrix + i, bias.load(h * matrix + i));
        map.store((2 * h + 1) * matrix + i, transition.load(h * matrix + i));
        states.store(h * matrix + i, entry.load(h * matrix + i));
      }
    if (first == 0)
      reference::copy_bias(states, 1, map, 0);  // it has started from the sequence's own state
    else
      reference::merge_state(states, 1, 0, map, 0);
    for (std::int64_t i = 0; i < p.HV * matrix; ++i) entry.store(i, states.load(p.HV * matrix + i));
  }
}

TEST_F(ShortSegments, GiveEachSequenceItsBitsAndKeepToTheirMemory) {
  for (const std::string_view check :
       {"determinism", "guard", "stages", "packing", "causal", "ladder.permute", "ladder.suffix"})
    expect_pass("gdn/fwd/len=65+0+449+300,HK=1,HV=2,K=64,V=64,cap=830/bf16/gate=none/h0=normal=1/seed=6",
                "host.gdn.chunk_sm90_segments", check, "mode=turns");
  expect_pass("gdn/fwd/len=65+0+449,HK=1,HV=2,K=64,V=64/bf16/gate=edge/h0=normal=1/data=lattice/scale=1/seed=7",
              "host.gdn.chunk_sm90_segments", "lattice", "mode=turns");
}

TEST(HostBackends, SegmentsAreRightAtTheirOwnLength) {
  expect_pass("gdn/fwd/len=8322,HK=1,HV=1,K=64,V=64/bf16/gate=none/seed=8", "host.gdn.chunk_sm90_segments", "accuracy",
              "mode=late");
}

TEST(HostBackends, SegmentsPromiseNoBitsOfASplitThatMovesThem) {
  const Registry registry = backends_that_run("mode=late");
  const Backend& backend = registry.get("host.gdn.chunk_sm90_segments");
  const auto longer = judge("gdn/fwd/len=1+4097,HK=1,HV=1,K=64,V=64/bf16", backend, "ladder.split");
  EXPECT_EQ(longer.outcome, Outcome::skip);
  EXPECT_EQ(longer.reason, "not promised: segments of 4096 tokens are counted from where a call starts a sequence");
  const auto shorter = judge("gdn/fwd/len=1+200,HK=1,HV=1,K=64,V=64/bf16", backend, "ladder.split");
  EXPECT_EQ(shorter.outcome, Outcome::pass) << shorter.reason;
}

// As Gdn.BadOffsetsDoNotFault on a device: what comes out is not specified, but it ends and keeps to its memory.
TEST(HostBackends, BadOffsetsEnd) {
  const struct {
    const char* id;
    std::vector<std::int32_t> offsets;
  } cases[] = {{"gdn/fwd/len=10+10+10+10,HK=1,HV=2,K=128,V=128/bf16/h0=normal=1", {-5, 30, 7, 41, 2000000000}},
               {"gdn/fwd/len=100+100+56,HK=1,HV=2,K=128,V=128/bf16/h0=normal=1", {0, 256, 0, 64}}};
  for (const auto& [id, offsets] : cases) {
    const Case c = parse_id(id);
    Tensors inputs = make_inputs(c);
    std::copy(offsets.begin(), offsets.end(), inputs.find("cu_seqlens")->second.as<std::int32_t>().begin());
    const Registry registry = backends_that_run("mode=shuffled,sms=4");
    for (const Backend* backend : registry.match("host.gdn.*")) {
      const auto plan = backend->plan(c.problem, inputs, {});
      EXPECT_NO_THROW(plan->run()) << backend->name() << " " << id;
      EXPECT_EQ(plan->audit(), std::vector<std::string>{}) << backend->name() << " " << id;
    }
  }
}

// Runs take the modes in turn where none is named, so that equal bits are those of all modes.
TEST(HostBackends, BitsMemoryAndTapsAreRight) {
  for (const std::string_view check : {"determinism", "guard", "stages", "packing", "causal"})
    expect_pass("gdn/fwd/len=65+0+3,HK=1,HV=2,K=64,V=64,cap=80/bf16/gate=mild/h0=normal=1/seed=6", "host.gdn.chunk_*", check,
                "mode=turns");
  for (const std::string_view check : {"determinism", "guard", "stages", "packing", "causal"})
    expect_pass("gdn/fwd/len=130+0+64,HK=1,HV=1,K=128,V=128,cap=210/bf16/gate=mild/h0=normal=1/seed=6",
                "host.gdn.chunk_sm90_fused", check, "mode=turns");
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
