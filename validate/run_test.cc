#include "validate/run.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/staging.h"
#include "validate/planted.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Report, reports::Result;

constexpr const char* kId = "gdn/fwd/len=9+3,HK=1,HV=1,K=16,V=8/bf16/gate=mild/keys=iid/precise/seed=3";

SweepCase test_of(std::string_view id, std::vector<std::string> checks = {"accuracy"}, std::string expect = "pass") {
  return {.test = parse_id(id),
          .name = {},
          .note = {},
          .checks = std::move(checks),
          .ceilings = {},
          .expect = std::move(expect)};
}
Sweep sweep_of(std::vector<SweepCase> cases) { return {"test.json", "test", "*", std::move(cases)}; }

Tensors right(const Problem& p, const Tensors& inputs, bool taps) {
  return reference::run(p, inputs, reference::staging("chunk64.io"), taps);
}
Tensors zeros(const Problem& p, const Tensors& inputs, bool taps) {
  Tensors out = right(p, inputs, taps);
  out["o"] = Tensor(p.io, out["o"].shape());
  return out;
}
Tensors broken(const Problem&, const Tensors&, bool) { fail("launch: out of memory"); }

class WithoutGpu : public PlantedBackend {
 public:
  using PlantedBackend::PlantedBackend;
  std::optional<std::string> unsupported(const Problem&) const override { return "no GPU: none was found"; }
};
class TooSmall : public PlantedBackend {
 public:
  using PlantedBackend::PlantedBackend;
  std::optional<std::string> unsupported(const Problem& p) const override {
    return "K: expected 64, got " + std::to_string(p.K);
  }
};

struct Bench {
  Registry registry;
  Report report;

  template <class B = PlantedBackend>
  Bench& with(std::string name, PlantedBackend::Answer answer = right, std::string staging = "chunk64.io") {
    registry.add(std::make_unique<B>(std::move(name), std::move(staging), std::move(answer)));
    return *this;
  }
  const std::vector<Result>& run(const Sweep& sweep, const RunOptions& options = {}) {
    run_sweep(sweep, registry, options, report);
    return report.results;
  }
};

TEST(RunSweep, GivesOneResultForEachCaseBackendAndCheckInThatOrder) {
  Bench bench;
  bench.with("a").with("b");
  const Sweep sweep = sweep_of({test_of(kId, {"accuracy", "determinism"}), test_of("gdn/fwd/len=2,K=16,V=8/bf16/seed=1")});
  const auto& results = bench.run(sweep);
  ASSERT_EQ(results.size(), 6u);
  std::vector<std::string> lines;
  for (const Result& r : results) lines.push_back(r.test + " " + r.backend + " " + r.check);
  EXPECT_EQ(lines, list_sweep(sweep, bench.registry, {}));
  for (const Result& r : results) EXPECT_EQ(r.outcome, Outcome::pass) << r.reason;
  EXPECT_EQ(results[0].test, kId);
  EXPECT_EQ(results[0].op, "gdn");
  EXPECT_EQ(results[0].direction, "fwd");
  EXPECT_EQ(results[0].tensors.size(), 2u);
  EXPECT_EQ(bench.report.exit_status(), 0);
}

TEST(RunSweep, AWrongAnswerFailsWithAReasonAndACommandThatShowsItAgain) {
  Bench bench;
  const auto& results = bench.with("zeros", zeros).run(sweep_of({test_of(kId)}));
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].outcome, Outcome::fail);
  EXPECT_EQ(results[0].reason.substr(0, 2), "o:");
  EXPECT_EQ(results[0].repro, std::string("deltagauge validate --case '") + kId + "' --check accuracy --backend zeros");
  EXPECT_EQ(bench.report.exit_status(), 1);
}

TEST(RunSweep, AnExceptionBecomesAnErrorRowAndTheRestGoesOn) {
  Bench bench;
  const auto& results = bench.with("broken", broken).with("right").run(sweep_of({test_of(kId)}));
  ASSERT_EQ(results.size(), 2u);
  EXPECT_EQ(results[0].outcome, Outcome::error);
  EXPECT_EQ(results[0].reason, "launch: out of memory");
  EXPECT_EQ(results[1].outcome, Outcome::pass);
}

TEST(RunSweep, InputsThatAreRefusedAreAnErrorUnlessTheConfigExpectsIt) {
  constexpr const char* kDiverging = "gdn/fwd/len=64,K=16,V=8/bf16/gate=none/beta=const=2/kscale=2/seed=1";
  Bench bench;
  const auto& results = bench.with("right").run(
      sweep_of({test_of(kDiverging), test_of(kDiverging, {"accuracy"}, "refused"), test_of(kId, {"accuracy"}, "refused")}));
  ASSERT_EQ(results.size(), 3u);
  EXPECT_EQ(results[0].outcome, Outcome::error);
  EXPECT_EQ(results[1].outcome, Outcome::pass) << results[1].reason;
  EXPECT_EQ(results[2].outcome, Outcome::fail);
  EXPECT_EQ(results[2].reason, "expected a refusal, got an answer");
}

TEST(RunSweep, AMalformedCaseIsNoRefusalAndNeitherIsABrokenBackend) {
  constexpr const char* kMalformed = "gdn/fwd/len=2,K=16,V=8/bf16/Beta[0,0]=1/seed=1";
  Bench bench;
  const auto& results =
      bench.with("broken", broken)
          .run(sweep_of({test_of(kMalformed, {"accuracy"}, "refused"), test_of(kId, {"accuracy"}, "refused")}));
  EXPECT_EQ(results[0].outcome, Outcome::error);
  EXPECT_NE(results[0].reason.find("Beta"), std::string::npos) << results[0].reason;
  EXPECT_EQ(results[1].outcome, Outcome::error);
  EXPECT_EQ(results[1].reason, "launch: out of memory");
}

TEST(RunSweep, ShowsAFailedRefusalAgainFromTheConfigThatAsksForIt) {
  RunOptions options;
  options.config = "it's.json";
  Bench bench;
  const auto& results = bench.with("right").run(sweep_of({test_of(kId, {"accuracy"}, "refused")}), options);
  EXPECT_EQ(results[0].repro,
            std::string("deltagauge validate 'it'\\''s.json' --filter '") + kId + "' --check accuracy --backend right");
}

TEST(RunSweep, InputsWithoutAnAnswerAreRefusedWithTensorIndexAndValue) {
  constexpr std::pair<const char*, const char*> kRefused[] = {
      {"q[0,0,3]=nan", "inputs: q[0, 0, 3] = nan: expected a finite value that bf16 holds"},
      {"g[1,0]=nan", "inputs: g[1, 0] = nan: expected a log decay <= 0 that f32 holds"},
      {"g[1,0]=inf/diverge=on", "inputs: g[1, 0] = inf: expected a log decay <= 0 that f32 holds"},
      {"beta[0,0]=nan", "inputs: beta[0, 0] = nan: expected a finite value that f32 holds"},
      {"v=normal=inf", "inputs: v[0, 0, 0] = "},
      {"v=normal=1e300", "inputs: v[0, 0, 0] = "},
      {"h0=normal=1e39", "inputs: initial_state[0, 0, 0, "},
  };
  Bench bench;
  bench.with("right");
  for (const auto& [part, message] : kRefused) {
    Report report;
    run_sweep(sweep_of({test_of(std::string("gdn/fwd/len=2,K=16,V=8/bf16/") + part)}), bench.registry, {}, report);
    EXPECT_EQ(report.results[0].outcome, Outcome::error) << part;
    EXPECT_EQ(report.results[0].reason.substr(0, std::string(message).size()), message);
  }
  Report report;
  run_sweep(sweep_of({test_of("gdn/fwd/len=2,K=16,V=8/bf16/g[1,0]=-inf")}), bench.registry, {}, report);
  EXPECT_EQ(report.results[0].outcome, Outcome::pass) << report.results[0].reason;
}

TEST(RunSweep, AnOracleWithoutAnAnswerIsAnErrorAndNoPass) {
  Bench bench;
  const auto& results = bench.with("right").run(
      sweep_of({test_of("gdn/fwd/len=200,K=16,V=8/bf16/gate=none/beta=const=2/kscale=1000/diverge=on")}));
  EXPECT_EQ(results[0].outcome, Outcome::error);
  EXPECT_NE(results[0].reason.find("no answer to judge by"), std::string::npos) << results[0].reason;
}

// A program whose sum of squares leaves f32 answers 0, and nothing that another program does makes that right.
TEST(RunSweep, AnOverflowInsideAKernelIsNoRounding) {
  const auto overflowing = [](const Problem& p, const Tensors& inputs, bool) {
    Tensors out = reference::run(p, inputs, reference::staging("l2norm.f32"), false);
    out["y"] = Tensor(p.io, out["y"].shape());
    return out;
  };
  const auto careful = [](const Problem& p, const Tensors& inputs, bool) {
    return reference::run(p, inputs, reference::staging("l2norm.f32"), false);
  };
  Bench bench;
  bench.with("overflowing", overflowing, "l2norm.f32").with("careful", careful, "l2norm.f32");
  for (const char* io : {"f32", "bf16"}) {
    Report report;
    run_sweep(sweep_of({test_of(std::string("l2norm/fwd/len=4/v=normal=1e38/") + io)}), bench.registry, {}, report);
    EXPECT_EQ(report.results[0].outcome, Outcome::fail) << io;
    EXPECT_EQ(report.results[1].outcome, Outcome::pass) << io << ": " << report.results[1].reason;
  }
}

// The same inside gdn: keys that normalise to 0 write nothing.
TEST(RunSweep, KeysLostToAnOverflowFail) {
  const auto overflowing = [](const Problem& p, const Tensors& inputs, bool taps) {
    Tensors lost = inputs;
    lost["k"] = Tensor(p.io, lost["k"].shape());
    return reference::run(p, lost, reference::staging("chunk64.io"), taps);
  };
  Bench bench;
  bench.with("overflowing", overflowing).with("right");
  const auto& results =
      bench.run(sweep_of({test_of("gdn/fwd/len=17,K=16,V=16/bf16/gate=mild/l2norm=on/kscale=1e19/seed=3")}));
  EXPECT_EQ(results[0].outcome, Outcome::fail);
  EXPECT_EQ(results[1].outcome, Outcome::pass) << results[1].reason;
}

TEST(RunSweep, AnUnsupportedCaseIsSkippedOrARefusal) {
  Bench bench;
  const auto& results = bench.with<TooSmall>("small").run(sweep_of({test_of(kId), test_of(kId, {"accuracy"}, "refused")}));
  EXPECT_EQ(results[0].outcome, Outcome::skip);
  EXPECT_EQ(results[0].reason, "K: expected 64, got 16");
  EXPECT_EQ(results[1].outcome, Outcome::pass);
}

TEST(RunSweep, AMissingGpuIsASkipAndAFailureWhereOneIsRequired) {
  Bench bench;
  const auto sweep = sweep_of({test_of(kId), test_of(kId, {"accuracy"}, "refused")});
  bench.with<WithoutGpu>("cuda.x").run(sweep);
  for (const Result& r : bench.report.results) EXPECT_EQ(r.outcome, Outcome::skip);
  EXPECT_EQ(bench.report.exit_status(), 3);
  RunOptions options;
  options.cuda_missing_is_failure = true;
  Report required;
  run_sweep(sweep, bench.registry, options, required);
  for (const Result& r : required.results) EXPECT_EQ(r.outcome, Outcome::fail) << r.reason;
}

TEST(RunSweep, RunsOnlyWhatTheOptionsAskFor) {
  Bench bench;
  bench.with("a.one").with("a.two").with("b");
  Sweep sweep = sweep_of({test_of(kId), test_of("gdn/fwd/len=2,K=16,V=8/bf16/seed=1")});
  sweep.cases[1].name = "tiny";
  RunOptions options;
  options.backend = "a.*";
  options.filter = "tiny";
  options.checks = {"guard"};
  const auto lines = list_sweep(sweep, bench.registry, options);
  ASSERT_EQ(lines.size(), 2u);
  EXPECT_EQ(lines[0].substr(lines[0].find(' ')), " a.one guard");
  sweep.backend = "*.two,b";
  EXPECT_EQ(list_sweep(sweep, bench.registry, options).size(), 1u);
  options.checks = {"speed"};
  EXPECT_THROW(list_sweep(sweep, bench.registry, options), Error);
}

TEST(RunSweep, BackendsOfAnotherOpMakeNoRow) {
  Bench bench;
  bench.with("gdn").with("norm", right, "l2norm.f32");
  ASSERT_EQ(list_sweep(sweep_of({test_of(kId)}), bench.registry, {}).size(), 1u);
}

TEST(RunSweep, ReportsProgressAfterEveryResult) {
  Bench bench;
  RunOptions options;
  std::string seen;
  options.loop.done = [&](std::span<const Result> rows) {
    for (const Result& r : rows) seen += r.check + " ";
  };
  bench.with("right").run(sweep_of({test_of(kId, {"accuracy", "causal"})}), options);
  EXPECT_EQ(seen, "accuracy causal ");
}

TEST(RunSweep, WhatIsKnownIsTakenOverAfterAStopToo) {
  Bench bench;
  const std::string name = to_id(test_of(kId).test) + " right causal";
  std::vector<Result> known(1);
  known[0].reason = "from before";
  RunOptions options;
  options.loop.stopped = [] { return true; };
  options.loop.known = [&](const std::string& job) { return job == name ? &known : nullptr; };
  const auto& results = bench.with("right").run(sweep_of({test_of(kId, {"accuracy", "causal"})}), options);
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].reason, "from before");
}

TEST(RunSweep, APassThatComparedNothingIsASkip) {
  std::vector<std::string> all;
  for (const CheckInfo& check : checks()) all.emplace_back(check.name);
  const auto outcomes = [&](const std::string& id) {
    Bench bench;
    std::map<std::string, Outcome> got;
    for (const Result& r : bench.with("right").run(sweep_of({test_of(id, all)}))) {
      got[r.check] = r.outcome;
      EXPECT_EQ(r.reason.empty(), r.outcome == Outcome::pass) << id << " " << r.check;
    }
    return got;
  };
  for (const char* data : {"random", "lattice"}) {
    const std::string empty =
        std::string("gdn/fwd/len=0x2,HK=1,HV=1,K=16,V=8/bf16/gate=none/data=") + data + "/final=off/seed=1";
    for (const auto& [check, outcome] : outcomes(empty)) EXPECT_EQ(outcome, Outcome::skip) << data << " " << check;
  }
  // A state that is handed through, and rows past the end that must stay as they are.
  auto state = outcomes("gdn/fwd/len=0x2,HK=1,HV=1,K=16,V=8/bf16/h0=normal=1/seed=1");
  for (const char* check : {"accuracy", "guard", "determinism", "packing", "fast", "ladder.repeat"})
    EXPECT_EQ(state.at(check), Outcome::pass) << check;
  EXPECT_EQ(state.at("causal"), Outcome::skip);
  auto suffix = outcomes("gdn/fwd/len=0x2,HK=1,HV=1,K=16,V=8,cap=5/bf16/final=off/seed=1");
  for (const auto& [check, outcome] : suffix) EXPECT_EQ(outcome, check == "guard" ? Outcome::pass : Outcome::skip) << check;
}

TEST(RunSweep, ACaseWithACeilingIsShownAgainThroughItsConfig) {
  Bench bench;
  SweepCase test = test_of(kId);
  test.ceilings = {{"o", "rel_l2", 0, "nobody"}};
  RunOptions options;
  options.config = "configs/x.json";
  const auto& results = bench.with("right").run(sweep_of({test}), options);
  EXPECT_EQ(results[0].outcome, Outcome::fail);
  EXPECT_EQ(results[0].repro.find("deltagauge validate 'configs/x.json' --filter"), 0u) << results[0].repro;
}

TEST(RunOnInputs, JudgesTensorsThatCameFromElsewhere) {
  Bench bench;
  bench.with("right").with("zeros", zeros);
  const SweepCase test = test_of(kId, {"accuracy", "packing"});
  RunOptions options;
  options.config = "dump.safetensors";
  run_on_inputs(test, make_inputs(parse_id("gdn/fwd/len=9+3,HK=1,HV=1,K=16,V=8/bf16/gate=strong/seed=8")), bench.registry,
                options, bench.report);
  ASSERT_EQ(bench.report.results.size(), 4u);
  EXPECT_EQ(bench.report.results[0].outcome, Outcome::pass) << bench.report.results[0].reason;
  EXPECT_EQ(bench.report.results[2].outcome, Outcome::fail);
  EXPECT_EQ(bench.report.results[2].repro,
            "deltagauge validate --tensors 'dump.safetensors' --op gdn --check accuracy --backend zeros");
}

TEST(CpuBackends, AreNamedAfterTheirStagingAndServeTheirOp) {
  Registry registry;
  add_cpu_backends(registry);
  for (const reference::Staging& staging : reference::stagings())
    EXPECT_EQ(registry.get("reference.as_kernel." + std::string(staging.name)).staging({}), staging.name);
  for (const char* id : {kId, "l2norm/fwd/len=4,K=16/bf16/seed=1", "gate/fwd/len=4,HV=2/bf16/seed=1"}) {
    Report report;
    run_sweep(sweep_of({test_of(id, {"accuracy", "guard"})}), registry, {}, report);
    EXPECT_GE(report.results.size(), 4u);
    for (const Result& r : report.results)
      EXPECT_EQ(r.outcome, Outcome::pass) << r.backend << " " << r.check << ": " << r.reason;
  }
}

}  // namespace
}  // namespace deltagauge::validate
