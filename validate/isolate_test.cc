// Jobs in child processes, with backends that crash and hang. This program is its own worker.
#include "validate/isolate.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <iostream>

#include "core/error.h"
#include "reference/staging.h"
#include "validate/planted.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

constexpr const char* kId = "gdn/fwd/len=9+3,HK=1,HV=1,K=16,V=8/bf16/gate=mild/keys=iid/precise/seed=3";
constexpr const char* kOther = "gdn/fwd/len=2,HK=1,HV=1,K=16,V=8/bf16/gate=mild/keys=iid/precise/seed=3";

Tensors right(const Problem& p, const Tensors& inputs, bool taps) {
  return reference::run(p, inputs, reference::staging("chunk64.io"), taps);
}
Tensors crashes(const Problem&, const Tensors&, bool) {
  std::signal(SIGSEGV, SIG_DFL);  // past a sanitizer's handler
  std::raise(SIGSEGV);
  return {};
}
Tensors hangs(const Problem&, const Tensors&, bool) {
  for (;;) ::pause();
}
Tensors leaves(const Problem&, const Tensors&, bool) { std::_Exit(3); }
Tensors broken(const Problem&, const Tensors&, bool) { fail("launch: an illegal memory access"); }
// Right in a process where it was not asked before: what a device fault leaves behind.
Tensors once(const Problem& p, const Tensors& inputs, bool taps) {
  static int asked = 0;
  if (++asked > 1) fail("asked before");
  return right(p, inputs, taps);
}
Tensors prints(const Problem& p, const Tensors& inputs, bool taps) {
  std::cout << "not for stdout" << std::endl;
  return right(p, inputs, taps);
}

Registry planted() {
  Registry registry;
  const auto add = [&](const char* name, PlantedBackend::Answer answer) {
    registry.add(std::make_unique<PlantedBackend>(name, "chunk64.io", std::move(answer)));
  };
  add("broken", broken);
  add("crashes", crashes);
  add("hangs", hangs);
  add("leaves", leaves);
  add("once", once);
  add("prints", prints);
  add("right", right);
  return registry;
}

Sweep sweep() {
  Sweep two{"", "test", "*", {}};
  for (const char* id : {kId, kOther}) {
    SweepCase& one = two.cases.emplace_back();
    one.test = parse_id(id);
    one.checks = {"accuracy", "causal"};
  }
  return two;
}

int work(const char* task_word, const char* backends) {
  const WorkerTask task = worker_task(task_word);
  RunOptions options;
  options.backend = backends;
  options.loop.only = task.numbers;
  options.loop.done = [&](std::span<const Result> rows) { send_rows(task, rows); };
  reports::Report report;
  run_sweep(sweep(), planted(), options, report);
  return 0;
}

std::vector<Result> run_apart(const std::string& backends, double timeout = 0) {
  Workers workers(
      [&](const std::string& task) {
        return std::vector<std::string>{"isolate_test", "worker", task, backends};
      },
      timeout);
  RunOptions options;
  options.backend = backends;
  options.loop.workers = &workers;
  reports::Report report;
  run_sweep(sweep(), planted(), options, report);
  return report.results;
}

TEST(Workers, GiveTheRowsThatTheProcessItselfWouldHaveGiven) {
  RunOptions options;
  options.backend = "right";
  reports::Report here;
  run_sweep(sweep(), planted(), options, here);
  const auto apart = run_apart("right");
  ASSERT_EQ(apart.size(), here.results.size());
  for (std::size_t i = 0; i < apart.size(); ++i) {
    EXPECT_EQ(apart[i].test, here.results[i].test);
    EXPECT_EQ(apart[i].check, here.results[i].check);
    EXPECT_EQ(apart[i].outcome, Outcome::pass) << apart[i].reason;
    EXPECT_EQ(apart[i].tensors.size(), here.results[i].tensors.size());
    for (const auto& [name, metrics] : apart[i].tensors)
      EXPECT_EQ(metrics.row_ratio, here.results[i].tensors.at(name).row_ratio);
  }
}

TEST(Workers, ACrashIsAnErrorRowThatNamesTheSignalAndTheRestGoesOn) {
  const auto rows = run_apart("crashes,leaves,right");
  ASSERT_EQ(rows.size(), 12u);
  for (const Result& row : rows) {
    const bool sound = row.backend == "right";
    EXPECT_EQ(row.outcome, sound ? Outcome::pass : Outcome::error) << row.backend << row.reason;
    EXPECT_EQ(row.reason, sound                     ? ""
                          : row.backend == "leaves" ? "crashed: its process ended with exit status 3"
                                                    : "crashed: SIGSEGV");
    EXPECT_EQ(row.op, "gdn");
    EXPECT_EQ(row.repro.empty(), sound);
  }
}

TEST(Workers, AHangIsEndedAfterTheTimeLimit) {
  const auto rows = run_apart("hangs,right", 1);
  ASSERT_EQ(rows.size(), 8u);
  for (const Result& row : rows) {
    if (row.backend == "right") {
      EXPECT_EQ(row.outcome, Outcome::pass) << row.reason;
      continue;
    }
    EXPECT_EQ(row.outcome, Outcome::error);
    EXPECT_EQ(row.reason, "no answer within 1 s");
    EXPECT_GE(row.seconds, 1);
  }
}

TEST(Workers, AnErrorIsFollowedByANewProcessAndSoIsACase) {
  const auto rows = run_apart("broken,once");
  ASSERT_EQ(rows.size(), 8u);
  for (const std::size_t first : {0, 4}) {  // of each case: broken accuracy, broken causal, once accuracy, once causal
    EXPECT_EQ(rows[first].reason, "launch: an illegal memory access");
    EXPECT_EQ(rows[first + 1].reason, "launch: an illegal memory access");
    EXPECT_EQ(rows[first + 2].outcome, Outcome::pass) << rows[first + 2].reason;
    EXPECT_EQ(rows[first + 3].reason, "asked before") << "causal asks twice, and meets traces of its own case";
  }
}

TEST(Workers, KeepStdoutForTheReport) {
  testing::internal::CaptureStdout();
  const auto rows = run_apart("prints");
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "");
  for (const Result& row : rows) EXPECT_EQ(row.outcome, Outcome::pass) << row.reason;
}

TEST(Workers, RunOnlyWhatIsNotKnownAndStopWhenAsked) {
  const std::string name = kId + std::string(" crashes accuracy");
  std::vector<Result> earlier(1);
  earlier[0].test = kId, earlier[0].backend = "crashes", earlier[0].check = "accuracy", earlier[0].outcome = Outcome::pass;
  int asked = 0;
  Workers workers(
      [](const std::string& task) {
        return std::vector<std::string>{"isolate_test", "worker", task, "crashes"};
      },
      0);
  RunOptions options;
  options.backend = "crashes";
  options.loop.workers = &workers;
  options.loop.known = [&](const std::string& job) { return job == name ? &earlier : nullptr; };
  options.loop.stopped = [&] { return ++asked > 2; };
  reports::Report report;
  run_sweep(sweep(), planted(), options, report);
  ASSERT_EQ(report.results.size(), 3u);
  EXPECT_EQ(report.results[0].outcome, Outcome::pass);
  EXPECT_EQ(report.results[1].reason, "crashed: SIGSEGV");
  EXPECT_EQ(report.results[2].test, kOther);
}

TEST(WorkerTask, IsADescriptorAndNumbers) {
  const WorkerTask task = worker_task("7:3,14");
  EXPECT_EQ(task.descriptor, 7);
  EXPECT_EQ(task.numbers, (std::vector<std::size_t>{3, 14}));
  for (const char* bad : {"", "7", "7:", ":3", "7:3,", "7:x", "-1:3"}) EXPECT_THROW(worker_task(bad), Error) << bad;
}

}  // namespace
}  // namespace deltagauge::validate

int main(int argc, char** argv) {
  if (argc == 4 && std::string_view(argv[1]) == "worker") return deltagauge::validate::work(argv[2], argv[3]);
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
