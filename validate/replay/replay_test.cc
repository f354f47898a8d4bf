// The replay driver on the CPU: right backends pass over all 81 transitions, planted faults are caught where they show.
#include "validate/replay/replay.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/error.h"
#include "validate/replay/host_replay.h"
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
  EXPECT_EQ(replayed({kPool}, options)[0].outcome, reports::Outcome::error);
}

// Keeps time as a device would.
class Timed : public HostReplay {
 public:
  using HostReplay::HostReplay;
  std::optional<double> seconds(std::int64_t) override { return 0x1p-10; }
};

TEST(Replay, times_the_active_parts_of_the_capacity) {
  ReplayOptions options{.backend = "oracle.f64"};
  options.capture = [](const Backend& backend, const Problem& p, const Tensors& inputs) {
    return std::make_unique<Timed>(backend, p, inputs);
  };
  const auto rows = replayed({"l2norm/fwd/len=64x4,K=16/f32/seed=1"}, options);
  ASSERT_EQ(rows.size(), 6u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const double part[] = {1, 1 / 2., 1 / 4., 1 / 16., 1 / 64.};
    ASSERT_TRUE(rows[i].timing);
    EXPECT_EQ(rows[i].check, "replay-time");
    EXPECT_EQ(rows[i].timing->active, part[i - 1]);
    EXPECT_EQ(rows[i].timing->median, 0x1p-10);
    EXPECT_EQ(parse_id(rows[i].test).problem.rows(), 256);
  }
  EXPECT_EQ(rows[4].name, "active 1/16");
}

}  // namespace
}  // namespace deltagauge::validate
