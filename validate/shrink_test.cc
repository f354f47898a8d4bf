// Shrinking every planted fault of the selftest.
#include "validate/shrink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/faults.h"
#include "validate/planted.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

constexpr const char* kStaging = "chunk64.io";
constexpr std::int64_t kChunk = 64;

// Sizes of the selftest, and those of its regimes that show every fault between them.
constexpr const char* kSizes = "gdn/fwd/len=34+0+165+1,HK=2,HV=4,K=64,V=64,cap=203/";
constexpr const char* kRegimes[] = {
    "bf16/gate=strong/h0=normal=1/seed=42",
    "f16/gate=strong/h0=normal=1/seed=42",
    "bf16/gate=constant=-0.001/keys=repeated/beta=const=0.835/h0=zero/seed=42",
    "bf16/gate=mild/h0=normal=1e6/seed=42",
    "bf16/gate=mild/l2norm=on/kscale=0.001/h0=normal=1/seed=42",
    "bf16/gate=model/raw_gate=on/h0=normal=1/seed=42",
    "bf16/gate=none/data=lattice/h0=normal=1/seed=42",
    "bf16/gate=mild/h0=normal=1/slots=6/slot_pad=8/seed=42",
};

// Faults that cannot show in one sequence or one head, and what they need at the least.
struct Needs {
  std::int64_t sequences = 1, HK = 1, HV = 1;
};
const std::map<std::string_view, Needs> kNeeds = {
    {"final_state_slot", {2}}, {"sequence_leak", {2}},       {"depends_on_batch", {2}},
    {"tail_reads_next", {2}},  {"gate_of_head0", {1, 1, 2}}, {"head_map_modulo", {1, 2, 4}},
};

Tensors right(const Problem& p, const Tensors& inputs, bool taps) {
  return reference::run(p, inputs, reference::staging(kStaging), taps);
}

JudgeCase judge_of(const Backend& backend, std::string_view check) {
  return [&backend, check = std::string(check)](const Case& c) {
    SweepCase test;
    test.test = c;
    RunOptions options;
    options.oracle = oracle::Precision::f64;
    return run_one(test, backend, check, options);
  };
}

struct Mutant {
  std::string_view name;
  PlantedBackend backend;
  std::string check;
  bool (*shows)(const Problem&);
};
std::vector<Mutant> mutants() {
  std::vector<Mutant> all;
  for (const reference::Fault& fault : reference::faults("gdn")) {
    const auto answer = [&fault](const Problem& p, const Tensors& inputs, bool) {
      return reference::run_with_fault(p, inputs, reference::staging(kStaging), fault);
    };
    all.push_back({fault.name, {std::string(fault.name), kStaging, answer}, "accuracy", fault.shows});
  }
  for (const MemoryFault& fault : memory_faults())
    all.push_back({fault.name, {std::string(fault.name), kStaging, right, &fault}, std::string(fault.check), fault.shows});
  return all;
}

void expect_small(const Mutant& mutant, const Case& failing) {
  const JudgeCase judge = judge_of(mutant.backend, mutant.check);
  const Shrunk small = shrink(failing, judge, {});
  const Problem& p = small.smallest.problem;
  const auto found = kNeeds.find(mutant.name);
  const Needs needs = found == kNeeds.end() ? Needs{} : found->second;
  const std::string id = to_id(small.smallest);
  std::cout << mutant.name << " " << small.runs << " runs: " << id << "\n";
  EXPECT_LE(p.sequences(), needs.sequences) << mutant.name << " " << id;
  EXPECT_LE(p.tokens(), 2 * kChunk) << mutant.name << " " << id;
  EXPECT_LE(p.HK, needs.HK) << mutant.name << " " << id;
  EXPECT_LE(p.HV, needs.HV) << mutant.name << " " << id;
  EXPECT_EQ(parse_id(id), small.smallest);
  const Result again = judge(parse_id(id));
  EXPECT_EQ(again.outcome, Outcome::fail) << mutant.name << " " << id;
  const auto before = marks(judge(failing)), after = marks(again);
  EXPECT_TRUE(std::any_of(after.begin(), after.end(),
                          [&](const std::string& m) { return std::find(before.begin(), before.end(), m) != before.end(); }))
      << mutant.name << " fails in another tensor: " << again.reason;
  const PlantedBackend sound{"sound", kStaging, right};
  const Result correct = judge_of(sound, mutant.check)(small.smallest);
  EXPECT_TRUE(correct.outcome == Outcome::pass || correct.outcome == Outcome::skip)
      << "a sound backend fails too: " << mutant.name << " " << id << ": " << correct.reason;
}

TEST(Shrink, EveryPlantedFaultToOneSequenceTwoChunksAndOneHeadOrWhatItNeeds) {
  for (const Mutant& mutant : mutants()) {
    bool shown = false;
    for (const char* regime : kRegimes) {
      const Case c = parse_id(std::string(kSizes) + regime);
      if (shown || !mutant.shows(c.problem)) continue;
      shown = true;
      expect_small(mutant, c);
    }
    EXPECT_TRUE(shown) << mutant.name;
  }
}

TEST(Shrink, AFaultOfOneTokenOpsToOneSequenceAndOneHead) {
  const auto& fault = reference::fault("decode.error_before_decay");
  const PlantedBackend backend("planted", "gdn_decode.f32", [&fault](const Problem& p, const Tensors& inputs, bool) {
    return reference::run_with_fault(p, inputs, reference::staging("gdn_decode.f32"), fault);
  });
  const Case c = parse_id(
      "gdn_decode/fwd/len=1x6,HK=2,HV=4,K=16,V=8/bf16/gate=strong/h0=normal=1/slots=9/idx=holes=3/packed_qkv[0,3]=1/seed=1");
  const Problem p = shrink(c, judge_of(backend, "accuracy"), {}).smallest.problem;
  EXPECT_EQ(p.lengths, std::vector<std::int64_t>{1});
  EXPECT_EQ(p.HK, 1);
  EXPECT_EQ(p.HV, 1);
}

TEST(Shrink, ARawGateToPlainGatesWhereTheFaultIsElsewhere) {
  const auto& fault = reference::fault("error_before_decay");
  const PlantedBackend backend("planted", kStaging, [&fault](const Problem& p, const Tensors& inputs, bool) {
    return reference::run_with_fault(p, inputs, reference::staging(kStaging), fault);
  });
  const Case c = parse_id(
      "gdn/fwd/len=9+5,HK=1,HV=2,K=8,V=8/f32/gate=strong/raw_gate=on/transform=bounded/lb=-1/a_log=off/h0=normal=1/"
      "dt_bias[1]=0.5/seed=1");
  EXPECT_EQ(shrink(c, judge_of(backend, "accuracy"), {}).smallest.problem.raw_gate, Switch::off);
}

TEST(Shrink, RefusesACaseThatDoesNotFail) {
  const PlantedBackend sound{"sound", kStaging, right};
  try {
    shrink(parse_id("gdn/fwd/len=4,K=8,V=8"), judge_of(sound, "accuracy"), {});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("expected a case that fails, got pass"), std::string::npos) << e.what();
  }
}

TEST(Shrink, KeepsTheSequenceAndTheOverridesThatMatter) {
  const auto of_one_value = [](const Problem& p, const Tensors& inputs, bool taps) {  // wrong where v holds 7
    Tensors out = right(p, inputs, taps);
    for (std::int64_t i = 0; i < p.tokens() * p.HV * p.V; ++i)
      if (get(inputs, "v").load(i) == 7) out["o"].store(i, 1e4);
    return out;
  };
  const PlantedBackend backend{"sevens", kStaging, of_one_value};
  const Case c = parse_id("gdn/fwd/len=5+9+3,HK=1,HV=1,K=8,V=8/v[9,0,2]=7/q[0,0,*]=0.5/seed=1");
  const Case small = shrink(c, judge_of(backend, "accuracy"), {}).smallest;
  EXPECT_EQ(small.problem.lengths, std::vector<std::int64_t>{5});
  const Tensors inputs = make_inputs(small);
  EXPECT_EQ(get(inputs, "v").at({4, 0, 2}), 7);
}

}  // namespace
}  // namespace deltagauge::validate
