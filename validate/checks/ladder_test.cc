// The ladder: right backends keep every bit on every rung that applies; backends with one planted dependence are caught on
// the rung that looks for it, and the failure names the first tile that differs.
#include "validate/checks/ladder.h"

#include <gtest/gtest.h>

#include <memory>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/staging.h"
#include "validate/cp/degree_backend.h"
#include "validate/ladder/promises.h"
#include "validate/planted.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome;

constexpr const char* kRagged = "gdn/fwd/len=70+0+130+1,HK=1,HV=2,K=16,V=8,cap=220/bf16/gate=mild/h0=normal=1/seed=3";
constexpr const char* kPool =
    "gdn/fwd/len=70+0+130+1,HK=1,HV=2,K=16,V=8/bf16/h0=normal=1/slots=7/slot_pad=3/idx=holes=1/has=mixed/seed=3";
constexpr const char* kEqual = "gdn/fwd/len=66x3,HK=1,HV=2,K=16,V=8/bf16/gate=mild/seed=3";

Verdict climb(const std::string& id, std::string_view check, const Backend& backend) {
  const SweepCase test{.test = parse_id(id), .name = {}, .note = {}, .checks = {}, .ceilings = {}};
  Context context(test, make_inputs(test.test), oracle::Precision::f64);
  return find_check(check).run(context, backend);
}

Tensors answer(const Problem& p, const Tensors& inputs, bool taps) {
  return reference::run(p, inputs, reference::staging("chunk64.io"), taps);
}
using Spoil = std::function<void(const Problem&, const Tensors& inputs, Tensors& out)>;
PlantedBackend spoilt(Spoil spoil) {
  return {"spoilt", "chunk64.io", [spoil = std::move(spoil)](const Problem& p, const Tensors& inputs, bool taps) {
            Tensors out = answer(p, inputs, taps);
            spoil(p, inputs, out);
            return out;
          }};
}
void flip_lowest_bit(Tensor& tensor, std::int64_t element) {
  tensor.data()[static_cast<std::size_t>(element) * size_of(tensor.dtype())] ^= std::byte{1};
}

void expect_caught(const Verdict& verdict, const std::vector<std::string>& words) {
  EXPECT_EQ(verdict.outcome, Outcome::fail);
  for (const std::string& word : words)
    EXPECT_NE(verdict.reason.find(word), std::string::npos) << word << " in: " << verdict.reason;
}
void expect_skipped(const Verdict& verdict, const std::string& why) {
  EXPECT_EQ(verdict.outcome, Outcome::skip);
  EXPECT_NE(verdict.reason.find(why), std::string::npos) << why << " in: " << verdict.reason;
}

TEST(Ladder, HasACheckARungAndItsNameMeansAllOfThem) {
  std::string names;
  for (const Rung& rung : rungs()) {
    names += std::string(rung.name()) + " ";
    EXPECT_EQ(find_check(rung.check).info().name, rung.check);
    EXPECT_TRUE(names_check("ladder", rung.check));
    EXPECT_TRUE(names_check(rung.check, rung.check));
  }
  EXPECT_EQ(names, "repeat permute separate slice dense suffix split graph load schedule cp ");
  EXPECT_EQ(find_checks("ladder").size(), rungs().size());
  EXPECT_EQ(find_checks("packing").size(), 1u);
  EXPECT_THROW(find_check("ladder"), Error);
  EXPECT_THROW(find_checks("ladder.none"), Error);
  EXPECT_FALSE(names_check("ladder.s", "ladder.slice"));
  EXPECT_FALSE(names_check("ladder", "lattice"));
}

TEST(Ladder, RightBackendsPassEveryRungThatApplies) {
  Registry registry;
  add_cpu_backends(registry);
  for (const char* name : {"oracle.f64", "reference.recurrent", "reference.as_kernel.chunk_sm80.plain",
                           "reference.as_kernel.chunk16.io", "reference.as_kernel.chunk64.io"})
    for (const char* id : {kRagged, kPool, kEqual})
      for (const Rung& rung : rungs()) {
        const Verdict verdict = climb(id, rung.check, registry.get(name));
        const bool wide = std::string_view(name) == "oracle.f64" && rung.name() == "split";  // carries f64
        const bool ragged = rung.name() == "dense" && std::string_view(id) != kEqual;
        const bool apart = rung.name() == "graph" || rung.name() == "load" || rung.name() == "schedule";
        const bool over_ranks = id != kPool && promises_of(registry.get(name)) != nullptr &&
                                !promises_of(registry.get(name))->cp_degrees().empty();
        const bool whole = rung.name() == "cp" && !over_ranks;
        EXPECT_EQ(verdict.outcome, wide || ragged || apart || whole ? Outcome::skip : Outcome::pass)
            << name << " " << rung.check << " " << id << ": " << verdict.reason;
      }
}

TEST(Ladder, APassSaysHowManyTilesOfWhichStagesWereCompared) {
  const Verdict verdict = climb(kRagged, "ladder.permute", spoilt([](const Problem&, const Tensors&, Tensors&) {}));
  EXPECT_EQ(verdict.outcome, Outcome::pass) << verdict.reason;
  for (const char* stage : {"tiles.Ainv", "tiles.S", "tiles.v_new", "tiles.o"})
    EXPECT_EQ(verdict.values.at(stage), 2 * 2 * (2 + 0 + 3 + 1)) << stage;  // two orders, two heads
  EXPECT_EQ(verdict.values.at("tiles.final_state"), 2 * 2 * 4);
}

TEST(Ladder, CatchesAResultThatDependsOnThePlaceInTheBatch) {
  const auto backend = spoilt([](const Problem& p, const Tensors&, Tensors& out) {
    if (p.lengths[0] > 64) flip_lowest_bit(out["o"], 64 * p.HV * p.V);  // second chunk of what comes first
  });
  expect_caught(climb(kEqual, "ladder.permute", backend),
                {"sequences in reverse order: first in stage o, head 0, chunk 1, at [64, 0, 0]: sequence 0, token 64",
                 "got ", ", want ", "digests of the tile ", "tiles that differ: o 2 of 12"});
}

TEST(Ladder, CatchesAResultThatDependsOnTheNeighbour) {
  const auto backend = spoilt([](const Problem& p, const Tensors& inputs, Tensors& out) {
    const auto offsets = p.offsets();
    for (std::size_t n = 1; n < p.lengths.size(); ++n)  // the sequence before has an odd first key
      if (p.lengths[n] && p.lengths[n - 1] && inputs.at("k").load(offsets[n - 1] * p.HK * p.K) > 0)
        flip_lowest_bit(out["o"], offsets[n] * p.HV * p.V + p.V);
  });
  expect_caught(climb(kEqual, "ladder.separate", backend), {" alone: first in stage o, head 1, chunk 0, at ["});
  expect_caught(climb(kEqual, "ladder.slice", backend), {"first in stage o, head 1"});
  expect_caught(climb(kEqual, "packing", backend), {"first in stage o, head 1"});
  EXPECT_EQ(climb(kEqual, "ladder.repeat", backend).outcome, Outcome::pass);
}

TEST(Ladder, CatchesAResultThatDependsOnRowsPastTheEnd) {
  const auto reads_last_row = spoilt([](const Problem& p, const Tensors& inputs, Tensors& out) {
    if (p.rows() > p.tokens() && inputs.at("v").load(p.tokens() * p.HV * p.V) < 1e9) flip_lowest_bit(out["final_state"], 3);
  });
  expect_caught(climb(kRagged, "ladder.suffix", reads_last_row),
                {"rows past the end that repeat the first token: first in stage final_state, head 0, after 2 chunks, at "
                 "[0, 0, 0, 3]: sequence 0, head 0"});
  const auto counts_rows = spoilt([](const Problem& p, const Tensors&, Tensors& out) {
    if (p.rows() > 300) flip_lowest_bit(out["o"], 0);
  });
  EXPECT_EQ(climb(kRagged, "ladder.suffix", counts_rows).outcome, Outcome::pass);  // 285 rows
  const std::string longer = "gdn/fwd/len=70,HK=1,HV=2,K=16,V=8,cap=280/bf16/seed=3";
  expect_caught(climb(longer, "ladder.suffix", counts_rows), {"more rows past the end, of 1e30: first in stage o"});
}

TEST(Ladder, CatchesAResultThatChangesFromRunToRun) {
  int runs = 0;
  const auto backend = spoilt([&runs](const Problem& p, const Tensors&, Tensors& out) {
    if (runs++ == 2) flip_lowest_bit(out["o"], 65 * p.HV * p.V);
  });
  expect_caught(climb(kRagged, "ladder.repeat", backend), {"run 3 of one plan: first in stage o, head 0, chunk 1"});
  runs = 0;
  expect_caught(climb(kRagged, "determinism", backend), {"run 3 of one plan"});
}

TEST(Ladder, CatchesAKernelThatChangesWhenIntermediatesAreAskedFor) {
  const PlantedBackend backend("tapped", "chunk64.io", [](const Problem& p, const Tensors& inputs, bool taps) {
    Tensors out = answer(p, inputs, taps);
    if (taps) flip_lowest_bit(out["o"], 0);
    return out;
  });
  expect_caught(climb(kRagged, "ladder.repeat", backend), {"a plan without intermediates: first in stage o"});
}

TEST(Ladder, CatchesASplitThatRoundsTheStateAndSaysThatTheStateDiffersFirst) {
  const auto backend = spoilt([](const Problem&, const Tensors&, Tensors& out) {
    out["final_state"] = cast(cast(out["final_state"], DType::bf16), DType::f32);
  });
  expect_caught(
      climb(kRagged, "ladder.split", backend),
      {"split after the first chunk, the second call: first in stage S, head 0, chunk 1, at [1, 0, 0, 0]: sequence 0, "
       "chunk 1, head 0",
       " S "});
  for (const char* check : {"ladder.repeat", "ladder.permute", "ladder.separate"})
    EXPECT_EQ(climb(kRagged, check, backend).outcome, Outcome::pass) << check;
}

TEST(Ladder, CatchesOneTileOfOneHeadThatDiffersInAnIntermediateOnly) {
  const auto backend = spoilt([](const Problem& p, const Tensors&, Tensors& out) {
    if (p.sequences() == 1 && out.contains("Ainv") && p.tokens() == 130)  // chunk 2, head 1, row 1, column 0
      flip_lowest_bit(out["Ainv"], ((2 * p.HV + 1) * 64 + 1) * 64);
  });
  expect_caught(
      climb(kRagged, "ladder.separate", backend),
      {"sequence 2 alone: first in stage Ainv, head 1, chunk 2, at [4, 1, 1, 0]: sequence 2, chunk 2, head 1, row 1, "
       "column 0: got ",
       "tiles that differ: Ainv 1 of 6"});
  EXPECT_EQ(climb(kRagged, "packing", backend).outcome, Outcome::pass);
}

class Declared : public PlantedBackend, public Promises {
 public:
  explicit Declared(const Backend* other) : PlantedBackend("declared", "chunk64.io", answer), other_(other) {}
  std::optional<std::string> not_promised(std::string_view rung, const Problem&) const override {
    if (rung == "permute") return "sums are split by place";
    return {};
  }
  std::vector<const Backend*> schedules() const override { return {other_}; }
  std::vector<const Backend*> cp_degrees() const override { return {this, other_}; }

 private:
  const Backend* other_;
};

// Calls meet after chunks of the staging; a backend whose own are longer rounds its state elsewhere.
TEST(Ladder, ASplitIsPromisedAtWholeChunksOfTheBackend) {
  Registry cpu;
  add_cpu_backends(cpu);
  const std::string id = "gdn/fwd/len=200+130+64,K=16,V=8/bf16/h0=normal=1/seed=1";
  for (const char* name : {"reference.chunk16", "reference.chunk64", "reference.as_kernel.chunk128.io"})
    EXPECT_EQ(climb(id, "ladder.split", cpu.get(name)).outcome, Outcome::pass) << name;
  expect_skipped(climb(id, "ladder.split", cpu.get("reference.chunk128")),
                 "not promised: its chunks have 128 tokens, and calls meet after 64");
}

TEST(Ladder, ASkipSaysWhatIsNotPromisedAndWhatIsNotOffered) {
  const PlantedBackend plain("plain", "chunk64.io", answer);
  expect_skipped(climb(kRagged, "ladder.permute", Declared(&plain)), "not promised: sums are split by place");
  expect_skipped(climb(kRagged, "ladder.schedule", plain), "not offered: the backend has one schedule");
  expect_skipped(climb(kRagged, "ladder.cp", plain), "not offered: the backend has no context parallelism");
  expect_skipped(climb(kRagged, "ladder.graph", plain), "not offered: the plan does not run on a device");
  expect_skipped(climb(kRagged, "ladder.load", plain), "not offered: the plan does not run on a device");
  expect_skipped(climb(kRagged, "ladder.dense", plain), "lengths differ");
  const PlantedBackend wide("wide", "chunk64.f64", answer);
  expect_skipped(climb(kRagged, "ladder.split", wide), "not promised: staging chunk64.f64 carries the state in f64");
  const std::string id = "gdn/fwd/len=70+9,K=16,V=8/bf16/state=bf16/seed=1";
  expect_skipped(climb(id, "ladder.split", plain), "state=bf16: the state is rounded");
  expect_skipped(climb("gdn/fwd/len=64+9,K=16,V=8/bf16/seed=1", "ladder.split", plain), "longer than a chunk of 64");
  expect_skipped(climb("gdn/fwd/len=64,K=16,V=8/bf16/seed=1", "ladder.slice", plain), "one sequence");
  expect_skipped(climb("gdn/fwd/len=64,K=16,V=8/bf16/layout=dense/seed=1", "ladder.suffix", plain), "layout=dense");
  expect_skipped(climb("gdn/fwd/len=0x2,K=16,V=8/bf16/final=off/seed=1", "ladder.permute", plain), "nothing to compare");
}

TEST(Ladder, ComparesTheOtherSchedulesAndDegreesThatABackendOffers) {
  const PlantedBackend same("persistent", "chunk64.io", answer);
  const auto other = spoilt([](const Problem&, const Tensors&, Tensors& out) { flip_lowest_bit(out["o"], 0); });
  EXPECT_EQ(climb(kRagged, "ladder.schedule", Declared(&same)).outcome, Outcome::pass);
  EXPECT_EQ(climb(kRagged, "ladder.cp", Declared(&same)).outcome, Outcome::pass);
  expect_caught(climb(kRagged, "ladder.schedule", Declared(&other)), {"as spoilt: first in stage o, head 0, chunk 0"});
  expect_caught(climb(kRagged, "ladder.cp", Declared(&other)), {"as spoilt: first in stage o"});
}

TEST(Ladder, HoldsDegreesOfContextParallelismToTheBitsOfTheWhole) {
  Registry registry;
  add_cpu_backends(registry);
  const Backend& backend = registry.get("reference.as_kernel.chunk64.io");
  const Verdict verdict = climb(kRagged, "ladder.cp", backend);
  EXPECT_EQ(verdict.outcome, Outcome::pass) << verdict.reason;
  EXPECT_EQ(verdict.values.at("tiles.o"), 3 * 2 * (2 + 0 + 3 + 1));  // degrees 1, 2 and 3, two heads
  EXPECT_EQ(verdict.values.at("tiles.final_state"), 3 * 2 * 4);
  EXPECT_EQ(climb("gdn/fwd/len=130,K=16,V=8/bf16/h0=normal=1/seed=1", "ladder.cp", backend).outcome, Outcome::pass);
  expect_skipped(climb(kPool, "ladder.cp", backend),
                 "as reference.as_kernel.chunk64.io.cp1: not supported: slots: expected no state pool, got 7 slots");
  for (const char* name : {"oracle.f64", "reference.recurrent", "reference.as_kernel.chunk16.io"})
    expect_skipped(climb(kRagged, "ladder.cp", registry.get(name)), "not offered: the backend has no context parallelism");
}

TEST(Ladder, CatchesADocumentThatLeaksIntoTheNextOneOfItsRank) {
  const std::shared_ptr<const cp::StagedOp> op = cp::reference_op(reference::staging("chunk64.io"));
  const cp::DegreeBackend leaks("leaks", op, 2, cp::Fault::document_leak);
  const cp::DegreeBackend apart("apart", op, 4, cp::Fault::document_leak);  // no rank has two documents
  const Declared leaky(&leaks), sound(&apart);
  expect_caught(climb(kEqual, "ladder.cp", leaky), {"as leaks: first in stage o, head 0, chunk 0, at ["});
  EXPECT_EQ(climb(kEqual, "ladder.cp", sound).outcome, Outcome::pass);
}

TEST(Ladder, TakesTheOtherOpsToo) {
  for (const char* id : {"l2norm/fwd/len=5+0+9,HK=2,K=24,cap=16/bf16/seed=1", "gate/fwd/len=5+0+9,HV=3,cap=16/bf16/seed=1",
                         "gate/fwd/len=9x2,HV=3,K=8/f32/transform=bounded/per=channel/v=normal=8/seed=1"}) {
    const std::string staging = parse_id(id).problem.op + ".f32";
    const PlantedBackend backend("right", staging, [staging](const Problem& p, const Tensors& inputs, bool taps) {
      return reference::run(p, inputs, reference::staging(staging), taps);
    });
    for (const char* check : {"ladder.repeat", "ladder.permute", "ladder.separate", "ladder.slice", "ladder.suffix"}) {
      const Verdict verdict = climb(id, check, backend);
      EXPECT_EQ(verdict.outcome, Outcome::pass) << id << " " << check << ": " << verdict.reason;
    }
    expect_skipped(climb(id, "ladder.split", backend), "carries no state");
  }
}

}  // namespace
}  // namespace deltagauge::validate
