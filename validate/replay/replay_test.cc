// The replay driver on the CPU: right backends pass over all 81 transitions, planted faults are caught where they show.
#include "validate/replay/replay.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "core/error.h"
#include "validate/ladder/promises.h"
#include "validate/replay/host_replay.h"
#include "validate/replay/layout.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

constexpr const char* kPool = "gdn/fwd/len=40+40+40+40,HV=2,K=8,V=8/bf16/h0=normal=1/chunk=16/slots=7/slot_pad=4/seed=3";

Sweep sweep_of(const std::vector<std::string>& ids) {
  Sweep sweep{"", "test", "*", {}};
  for (const std::string& id : ids) sweep.cases.emplace_back().test = parse_id(id);
  return sweep;
}

std::vector<reports::Result> replayed(const std::vector<std::string>& ids, const ReplayOptions& options) {
  omp_set_num_threads(1);  // thousands of tiny calls
  Registry registry;
  add_cpu_backends(registry);
  reports::Report report;
  run_replay(sweep_of(ids), registry, options, report);
  return report.results;
}

ReplayOptions with_fault(ReplayFault fault) {
  ReplayOptions options{.backend = "reference.recurrent"};
  options.capture = [fault](const Backend& backend, const Problem& p, const Tensors& inputs) {
    return std::make_unique<HostReplay>(backend, p, inputs, fault);
  };
  return options;
}

TEST(Replay, right_backends_pass_over_every_transition) {
  const auto rows = replayed({kPool, "gdn/fwd/len=40+40+40,HV=2,K=8,V=8/bf16/seed=3"},
                             {.backend = "reference.recurrent,reference.as_kernel.chunk64.io.tc,oracle.f64"});
  ASSERT_EQ(rows.size(), 6u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.outcome, reports::Outcome::pass) << row.backend << ": " << row.reason;
    EXPECT_EQ(row.values.at("replays"), 82);
    EXPECT_EQ(row.values.at("transitions"), 81);
    EXPECT_GT(row.values.at("grew"), 20);
    EXPECT_GT(row.values.at("shrank"), 20);
    EXPECT_EQ(row.values.contains("with_sequences_without_slot"), row.test == rows[0].test);
    EXPECT_FALSE(row.timing) << "nothing keeps time on the CPU";
  }
  EXPECT_GT(rows[0].values.at("with_sequences_without_slot"), 20);
  EXPECT_GT(rows[0].values.at("with_slots_unread"), 20);
}

TEST(Replay, keeps_what_ran_when_where_it_is_asked_to) {
  ReplayOptions options = with_fault(ReplayFault::stale_end);
  EXPECT_TRUE(replayed({kPool}, options).at(0).spans.empty());
  options.spans = true;
  const reports::Result row = replayed({kPool}, options).at(0);
  std::vector<std::string> outermost, inside;  // inside the last replay
  double failed = 0;
  for (const reports::Span& span : row.spans) {
    if (span.depth == 0) outermost.push_back(span.name), inside.clear();
    if (span.depth == 1) inside.push_back(span.name);
    failed += !span.reason.empty();
    EXPECT_EQ(span.active_tokens.has_value(), span.name == "replay") << span.name;
    EXPECT_LE(span.start + span.seconds, row.seconds) << span.name;
  }
  std::vector<std::string> want{"inputs", "capture"};
  want.resize(84, "replay");
  EXPECT_EQ(outermost, want);
  EXPECT_EQ(inside, (std::vector<std::string>{"inputs", "load", "plan", "run", "judge"}));
  EXPECT_EQ(failed, row.values.at("replays_failed"));
}

TEST(Replay, serves_ops_without_a_state_too) {
  const auto rows = replayed({"l2norm/fwd/len=9+9+9,K=16/f32/seed=1", "gate/fwd/len=9+9+9,HV=4/f32/seed=1"},
                             {.backend = "oracle.f64,reference.as_kernel.*"});
  ASSERT_GE(rows.size(), 4u);
  for (const auto& row : rows) EXPECT_EQ(row.outcome, reports::Outcome::pass) << row.backend << ": " << row.reason;
}

TEST(Replay, walks_one_token_ops_over_slots_and_flags) {
  const std::string id = "gdn_decode/fwd/len=1x5,HK=1,HV=2,K=8,V=4,cap=7/bf16/h0=normal=1/slots=9/slot_pad=8/seed=1";
  const auto rows = replayed({id}, {.backend = "oracle.f64,reference.as_kernel.*"});
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) {
    EXPECT_EQ(row.outcome, reports::Outcome::pass) << row.backend << ": " << row.reason;
    EXPECT_EQ(row.values.at("transitions"), 81);
    EXPECT_GT(row.values.at("with_sequences_without_slot"), 40);
    EXPECT_GT(row.values.at("with_slots_unread"), 40);
  }
  ReplayOptions options = with_fault(ReplayFault::minus_one_written);
  options.backend = "reference.as_kernel.*";
  EXPECT_EQ(replayed({id}, options)[0].outcome, reports::Outcome::fail);
}

// What the reason says when a fault is caught.
std::vector<const char*> shown_by(ReplayFault fault) {
  switch (fault) {
    case ReplayFault::minus_one_written:
      return {"final_state: ", " elements that are no part of the layout were written, the first at [", ": slot "};
    case ReplayFault::suffix_read:
      return {"o against an eager call: ", ": sequence ", ", token "};
    case ReplayFault::tail_past_end:
      return {"o: ", " past the active end "};
    case ReplayFault::host_synchronisation:
      return {"expected no synchronisation with the host inside, got 1"};
    default:
      return {" after ", "len=", ", idx=", ", has="};
  }
}

TEST(Replay, catches_every_planted_fault_says_where_and_shows_it_again_by_its_step) {
  for (const ReplayFaultInfo& planted : replay_faults()) {
    ReplayOptions options = with_fault(planted.fault);
    const auto rows = replayed({kPool}, options);
    ASSERT_EQ(rows.size(), 1u);
    const reports::Result& row = rows[0];
    EXPECT_EQ(row.outcome, reports::Outcome::fail) << planted.name;
    EXPECT_TRUE(row.reason.starts_with("replay ")) << planted.name << ": " << row.reason;
    EXPECT_GT(row.values.at("replays_failed"), 0) << planted.name;
    EXPECT_EQ(row.values.at("transitions"), 81) << planted.name << ": the walk goes on";
    for (const char* part : shown_by(planted.fault))
      EXPECT_NE(row.reason.find(part), std::string::npos) << planted.name << ": " << row.reason;
    const auto at = row.repro.rfind("--step ");
    ASSERT_NE(at, std::string::npos) << row.repro;
    EXPECT_NE(row.repro.find("deltagauge replay --case 'gdn/fwd/"), std::string::npos) << row.repro;
    options.step = std::stoul(row.repro.substr(at + 7));
    const auto again = replayed({kPool}, options);
    EXPECT_EQ(again[0].reason.substr(0, row.reason.rfind(';')), row.reason.substr(0, row.reason.rfind(';'))) << planted.name;
  }
}

TEST(Replay, skips_what_has_no_layouts_and_reports_a_failed_capture) {
  const auto rows = replayed({"gdn/fwd/len=9+9", "gdn/fwd/len=9+9+9/g[0,0]=-1"}, {.backend = "oracle.f64"});
  ASSERT_EQ(rows.size(), 2u);
  for (const auto& row : rows) EXPECT_EQ(row.outcome, reports::Outcome::skip);
  EXPECT_EQ(rows[0].reason, "len: expected at least 3 sequences, got 2");
  ReplayOptions options{.backend = "oracle.f64"};
  options.capture = [](const Backend&, const Problem&, const Tensors&) -> std::unique_ptr<Replayable> {
    fail("capture: no");
  };
  const auto row = replayed({kPool}, options)[0];
  EXPECT_EQ(row.outcome, reports::Outcome::error);
  EXPECT_EQ(row.repro, "deltagauge replay --case '" + row.test + "' --backend oracle.f64 --walk 0");
}

// Keeps time as a device would.
class Timed : public HostReplay {
 public:
  Timed(const Backend& backend, const Problem& p, const Tensors& inputs, double seconds = 0x1p-10)
      : HostReplay(backend, p, inputs), seconds_(seconds) {}
  std::optional<double> seconds(std::int64_t) override { return seconds_; }

 private:
  double seconds_;
};

TEST(Replay, times_the_active_parts_of_the_capacity) {
  ReplayOptions options{.backend = "oracle.f64", .spans = true};
  options.capture = [](const Backend& backend, const Problem& p, const Tensors& inputs) {
    return std::make_unique<Timed>(backend, p, inputs);
  };
  const auto rows = replayed({"l2norm/fwd/len=64x4,K=16/f32/seed=1"}, options);
  ASSERT_EQ(rows.size(), 6u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const double part[] = {1, 1 / 2., 1 / 4., 1 / 16., 1 / 64.};
    ASSERT_TRUE(rows[i].timing);
    EXPECT_EQ(rows[i].check, "replay-time-1/" + std::to_string(static_cast<int>(1 / part[i - 1])));
    EXPECT_EQ(rows[i].timing->active, part[i - 1]);
    EXPECT_EQ(rows[i].timing->median, 0x1p-10);
    EXPECT_EQ(rows[i].test, rows[0].test);
    ASSERT_FALSE(rows[i].spans.empty());
    EXPECT_EQ(rows[i].spans.back().name, "samples");
    EXPECT_EQ(rows[i].spans.back().active_tokens, static_cast<std::int64_t>(256 * part[i - 1]));
  }
  EXPECT_EQ(rows[4].name, "active 16 of 256");
}

// The names of the time rows of a case, which has one walk.
std::vector<std::string> timed(const std::vector<std::string>& ids) {
  ReplayOptions options{.backend = "oracle.f64"};
  options.capture = [](const Backend& backend, const Problem& p, const Tensors& inputs) {
    return std::make_unique<Timed>(backend, p, inputs);
  };
  std::vector<std::string> names;
  std::set<std::tuple<std::string, std::string, std::string>> keys;
  for (const auto& row : replayed(ids, options)) {
    EXPECT_TRUE(keys.emplace(row.test, row.backend, row.check).second) << row.test << " " << row.check;
    if (row.timing) names.push_back(row.check.substr(12) + " " + row.name);
  }
  return names;
}

TEST(Replay, parts_of_the_capacity_that_come_to_the_same_layout_are_one_row) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(timed({"gdn_decode/fwd/len=1x6,HK=1,HV=1,K=8,V=4,cap=8/bf16/h0=normal=1/slots=9/seed=1"}),
            (Names{"1/1 active 6 of 6", "1/2 active 3 of 6", "1/4 active 2 of 6", "1/16 active 1 of 6"}));
  EXPECT_EQ(timed({"gdn/fwd/len=3+3+2,HV=1,K=8,V=8/bf16/seed=1"}),
            (Names{"1/1 active 8 of 8", "1/2 active 4 of 8", "1/4 active 2 of 8", "1/16 active 1 of 8"}));
  // Another case with the same capacity, so with the same layouts, has rows of its own.
  EXPECT_EQ(timed({"gdn/fwd/len=3+3+2,HV=1,K=8,V=8/bf16/seed=1", "gdn/fwd/len=1+6+1,HV=1,K=8,V=8/bf16/seed=1"}).size(), 8u);
}

// Another backend under a name of its own, with other backends as its schedules.
class Scheduled : public Backend, public Promises {
 public:
  Scheduled(std::string name, const Backend& other, std::vector<const Backend*> schedules)
      : name_(std::move(name)), other_(other), schedules_(std::move(schedules)) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return other_.summary(); }
  std::optional<std::string> unsupported(const Problem& p) const override { return other_.unsupported(p); }
  std::string_view staging(const Problem& p) const override { return other_.staging(p); }
  std::unique_ptr<Plan> plan(const Problem& p, const Tensors& inputs, const PlanOptions& options) const override {
    ++plans;
    return other_.plan(p, inputs, options);
  }
  mutable int plans = 0;  // that were asked for
  std::vector<const Backend*> schedules() const override { return schedules_; }

 private:
  std::string name_;
  const Backend& other_;
  std::vector<const Backend*> schedules_;
};

std::vector<reports::Result> replayed_as(std::string_view persistent, double seconds_of_persistent) {
  omp_set_num_threads(1);
  Registry cpu, registry;
  add_cpu_backends(cpu);
  const Backend& right = cpu.get("reference.recurrent");
  const Scheduled first("kernel.static", right, {}), second("kernel.persistent", cpu.get(persistent), {});
  registry.add(std::make_unique<Scheduled>("kernel", right, std::vector<const Backend*>{&first, &second}));
  ReplayOptions options;
  options.capture = [=](const Backend& backend, const Problem& p, const Tensors& inputs) {
    return std::make_unique<Timed>(backend, p, inputs, backend.name() == "kernel.persistent" ? seconds_of_persistent : 1e-3);
  };
  reports::Report report;
  run_replay(sweep_of({kPool}), registry, options, report);
  return report.results;
}

TEST(Replay, walks_and_times_the_schedules_of_a_backend_beside_it) {
  const auto rows = replayed_as("reference.recurrent", 0.99e-3);
  ASSERT_EQ(rows.size(), 3u + 5 * 4);
  const char* names[] = {"kernel", "kernel.static", "kernel.persistent", "kernel"};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t at = i < 3 ? i : (i - 3) % 4;
    EXPECT_EQ(rows[i].backend, names[at]);
    EXPECT_TRUE(rows[i].check.starts_with(i < 3 ? "replay" : at < 3 ? "replay-time-1/" : "replay-choice-1/"));
    EXPECT_EQ(rows[i].outcome, reports::Outcome::pass) << rows[i].reason;
    EXPECT_EQ(rows[i].name, rows[i < 3 ? 0 : i - at].name) << "the same part";
    EXPECT_EQ(rows[i].values.contains("over_best_schedule"), at == 3);
    EXPECT_EQ(rows[i].timing.has_value(), i >= 3 && at < 3);
  }
  for (std::size_t i = 6; i < rows.size(); i += 4) EXPECT_EQ(rows[i].values.at("over_best_schedule"), 1e-3 / 0.99e-3);
}

TEST(Replay, a_schedule_must_have_the_bits_of_the_backend_and_the_choice_may_cost_little) {
  const auto slow = replayed_as("reference.recurrent", 0.5e-3);
  for (const auto& row : slow)
    EXPECT_EQ(row.outcome, row.check.starts_with("replay-choice") ? reports::Outcome::fail : reports::Outcome::pass)
        << row.backend;
  EXPECT_EQ(slow[6].reason,
            "the schedule chosen: expected at most 5 % more than the 500000 ns of kernel.persistent, got 1000000 ns");
  EXPECT_EQ(slow[6].repro, "deltagauge replay --case '" + slow[0].test + "' --backend kernel --walk 0 --step 0");
  const auto wrong = replayed_as("reference.as_kernel.chunk64.io.tc", 0.5e-3);
  ASSERT_EQ(wrong.size(), 3u + 5 * 3);
  EXPECT_EQ(wrong[5].check, "replay-choice-1/1");
  EXPECT_EQ(wrong[5].outcome, reports::Outcome::skip);
  EXPECT_EQ(wrong[5].reason, "no time of kernel.persistent to judge the choice by");
  EXPECT_EQ(wrong[2].outcome, reports::Outcome::fail);
  EXPECT_NE(wrong[2].reason.find("o against an eager call: "), std::string::npos) << wrong[2].reason;
  EXPECT_NE(wrong[2].repro.find(" --backend kernel --walk "), std::string::npos) << wrong[2].repro;
}

// Fails at one of its replays.
class Breaking : public HostReplay {
 public:
  using HostReplay::HostReplay;
  void replay() override {
    if (replays_++ == 5) fail("no more");
    HostReplay::replay();
  }

 private:
  int replays_ = 0;
};

TEST(Replay, makes_the_eager_call_of_a_step_once_for_a_backend_and_its_schedules) {
  omp_set_num_threads(1);
  Registry cpu, registry;
  add_cpu_backends(cpu);
  const Backend& right = cpu.get("reference.recurrent");
  const Scheduled first("kernel.static", right, {}), second("kernel.persistent", right, {});
  registry.add(std::make_unique<Scheduled>("kernel", right, std::vector<const Backend*>{&first, &second}));
  const auto& kernel = dynamic_cast<const Scheduled&>(registry.get("kernel"));
  ReplayOptions options{.times = false, .spans = true};
  std::string breaks;
  options.capture = [&](const Backend& backend, const Problem& p, const Tensors& inputs) -> std::unique_ptr<Replayable> {
    if (backend.name() == breaks) return std::make_unique<Breaking>(right, p, inputs);
    return std::make_unique<HostReplay>(right, p, inputs);  // whose plans are not those of the eager calls
  };
  const auto rows = [&] {
    reports::Report report;
    run_replay(sweep_of({kPool}), registry, options, report);
    return report.results;
  };
  for (const reports::Result& row : rows()) {
    EXPECT_EQ(row.outcome, reports::Outcome::pass) << row.reason;
    EXPECT_EQ(row.values.at("replays"), 82);
    EXPECT_EQ(row.values.at("transitions"), 81);
    const auto plans = std::ranges::count(row.spans, "plan", &reports::Span::name);
    EXPECT_EQ(plans, row.backend == "kernel" ? 2 * 82 : 82) << row.backend << ": of the replay, and the eager call";
    for (std::size_t i = 1; i < row.spans.size(); ++i) EXPECT_GE(row.spans[i].start, row.spans[i - 1].start) << row.backend;
    EXPECT_LE(row.spans.back().start + row.spans.back().seconds, row.seconds) << row.backend;
  }
  EXPECT_EQ(kernel.plans, 82);
  EXPECT_EQ(first.plans + second.plans, 0);
  // One that breaks off leaves the others their walks, and the eager calls to the next.
  for (const char* name : {"kernel", "kernel.static"}) {
    breaks = name;
    kernel.plans = 0;
    for (const reports::Result& row : rows()) {
      EXPECT_EQ(row.outcome, row.backend == breaks ? reports::Outcome::error : reports::Outcome::pass) << row.reason;
      if (row.backend != breaks) continue;
      EXPECT_TRUE(row.reason.starts_with("replay 5 (")) << row.reason;
      EXPECT_TRUE(row.reason.ends_with("): no more")) << row.reason;
      EXPECT_EQ(row.repro, "deltagauge replay --case '" + row.test + "' --backend kernel --walk 0");
    }
    EXPECT_EQ(kernel.plans, 82) << name;
  }
}

}  // namespace
}  // namespace deltagauge::validate
