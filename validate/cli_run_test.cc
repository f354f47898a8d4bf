// Runs that are split, interrupted, killed, taken up again, isolated and shrunk, with the deltagauge binary.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "core/problem.h"
#include "reports/file.h"
#include "reports/json.h"
#include "validate/safetensors.h"

namespace deltagauge::validate {
namespace {

namespace fs = std::filesystem;
using reports::Outcome, reports::Report, reports::Result;

// A lattice case with keys that are off the lattice: the check of that name fails on any backend.
constexpr const char* kFailing =
    "gdn/fwd/len=5+34+20,HK=2,HV=4,K=16,V=16/bf16/gate=none/keys=iid/precise/data=lattice/scale=1/k[9:20,*,*]=0.3/seed=1";

// A report without what differs from run to run, in the order of its rows or sorted.
std::string lasting(Report report, bool sorted = false) {
  report.started.clear();
  report.argv.clear();
  for (Result& row : report.results) row.seconds = 0;
  if (sorted)
    std::sort(report.results.begin(), report.results.end(), [](const Result& a, const Result& b) {
      return std::tie(a.test, a.backend, a.check) < std::tie(b.test, b.backend, b.check);
    });
  return reports::to_json(report);
}

class Runs : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "runs_" + std::to_string(::getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ + name; }
  // Twelve cases, two checks, of which each takes a while.
  std::string config(const std::string& note = "") const {
    reports::write_file(file("sweep.json"),
                        R"({"schema": "deltagauge.sweep/1", "checks": ["accuracy", "causal"], "note": ")" + note +
                            R"(", "grid": [{"axes": {"len": "130+0+70", "HK": 1, "HV": 2,
                                                "seed": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]}}]})");
    return file("sweep.json");
  }
  pid_t start(std::vector<std::string> words) const {
    words.insert(words.begin(), "deltagauge");
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const pid_t child = ::fork();
    if (child != 0) return child;
    for (const auto& [name, descriptor] : {std::pair{"stdout", STDOUT_FILENO}, {"stderr", STDERR_FILENO}})
      ::dup2(::open((folder_ + name).c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600), descriptor);
    ::execv(DELTAGAUGE_BINARY, argv.data());
    ::_exit(127);
  }
  int wait(pid_t child) const {  // the exit status, or minus the signal
    int status = 0;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  int run(const std::vector<std::string>& words) const { return wait(start(words)); }
  // The sweep on one backend into a report; more flags behind.
  std::vector<std::string> sweep(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"validate", config(),  "--backend", "reference.recurrent,reference.as_kernel.chunk64.io",
                                   "--json",   file(name)};
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Report report(const std::string& name) const { return reports::load_report(file(name)); }
  std::string text(const std::string& name) const { return reports::read_file(file(name)); }  // stdout, stderr
  void wait_for(const std::string& name) const {
    while (!fs::exists(file(name))) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  std::string line(const std::string& before) const {  // of stdout, behind these words
    const std::string out = text("stdout");
    const auto at = out.find(before);
    return at == std::string::npos ? "" : out.substr(at + before.size(), out.find('\n', at) - at - before.size());
  }

 private:
  std::string folder_;
};

TEST_F(Runs, TwoShardsJoinedAreTheWholeRun) {
  ASSERT_EQ(run(sweep("whole.json")), 0);
  ASSERT_EQ(run(sweep("1.json", {"--shard", "1/2"})), 0);
  ASSERT_EQ(run(sweep("2.json", {"--shard", "2/2"})), 0);
  ASSERT_EQ(run({"report", "merge", file("1.json"), file("2.json"), "--json", file("joined.json")}), 0);
  EXPECT_EQ(report("1.json").results.size(), 24u);
  EXPECT_EQ(lasting(report("joined.json"), true), lasting(report("whole.json"), true));
}

TEST_F(Runs, AnInterruptEndsAfterTheCurrentJobAndResumeRunsTheRest) {
  ASSERT_EQ(run(sweep("whole.json")), 0);
  for (const int signal : {SIGINT, SIGTERM}) {
    const pid_t child = start(sweep("part.json", {"--junit", file("part.xml")}));
    wait_for("part.json.partial");
    ::kill(child, signal);
    ASSERT_EQ(wait(child), 2);
    const std::size_t judged = report("part.json").results.size();
    ASSERT_LT(judged, 48u);
    EXPECT_NE(text("stderr").find("interrupted, " + std::to_string(48 - judged) + " of 48 jobs left"), std::string::npos);
    EXPECT_TRUE(fs::exists(file("part.xml")));
    EXPECT_FALSE(fs::exists(file("part.json.partial")));
    ASSERT_EQ(run(sweep("again.json", {"--resume", file("part.json")})), 0) << text("stderr");
    EXPECT_EQ(lasting(report("again.json")), lasting(report("whole.json")));
    const Report part = report("part.json"), again = report("again.json");
    for (std::size_t i = 0; i < judged; ++i) EXPECT_EQ(again.results[i].seconds, part.results[i].seconds) << "taken over";
  }
}

TEST_F(Runs, AKilledRunLeavesItsRowsForResume) {
  const pid_t child = start(sweep("r.json"));
  wait_for("r.json.partial");
  ::kill(child, SIGKILL);
  EXPECT_EQ(wait(child), -SIGKILL);
  ASSERT_FALSE(fs::exists(file("r.json")));
  const double seconds = report("r.json.partial").results[0].seconds;
  ASSERT_EQ(run(sweep("r.json", {"--resume", file("r.json.partial")})), 0) << text("stderr");
  EXPECT_EQ(report("r.json").results.size(), 48u);
  EXPECT_EQ(report("r.json").results[0].seconds, seconds);
  EXPECT_FALSE(fs::exists(file("r.json.partial")));
}

TEST_F(Runs, ASecondInterruptEndsAtOnce) {
  const pid_t child = start({"validate", "--case", "gdn/fwd/len=2/seed=1", "--case", "gdn/fwd/len=1000000/seed=1",
                             "--backend", "reference.recurrent", "--isolate", "--json", file("r.json")});
  wait_for("r.json.partial");  // now at the second case, which takes long
  ::kill(child, SIGINT);
  while (text("stderr").find("once more to end at once") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  EXPECT_EQ(::waitpid(child, nullptr, WNOHANG), 0) << "the current job goes on";
  ::kill(child, SIGINT);
  EXPECT_EQ(wait(child), -SIGINT);
  EXPECT_EQ(report("r.json.partial").results.size(), 1u);
}

TEST_F(Runs, ResumeRefusesAReportOfAnotherBuildOrConfig) {
  ASSERT_EQ(run(sweep("r.json", {"--shard", "1/12"})), 0);
  Report other = report("r.json");
  other.tool.git_sha = std::string(40, '0');
  reports::write_file(file("other.json"), reports::to_json(other));
  EXPECT_EQ(run(sweep("again.json", {"--resume", file("other.json")})), 2);
  EXPECT_NE(text("stderr").find("--resume " + file("other.json") + ": tool: expected"), std::string::npos) << text("stderr");
  EXPECT_NE(text("stderr").find("got " + other.tool.version + " 0000"), std::string::npos) << text("stderr");
  const std::vector<std::string> words = sweep("again.json", {"--resume", file("r.json")});
  config("another");
  EXPECT_EQ(run(words), 2);
  EXPECT_NE(text("stderr").find("configs: expected"), std::string::npos) << text("stderr");
  EXPECT_EQ(run(sweep("again.json", {"--resume", file("none.json")})), 2);
  EXPECT_FALSE(fs::exists(file("again.json")));
}

TEST_F(Runs, IsolatedJobsGiveTheSameReport) {
  ASSERT_EQ(run(sweep("here.json")), 0);
  ASSERT_EQ(run(sweep("apart.json", {"--isolate"})), 0) << text("stderr");
  EXPECT_EQ(lasting(report("apart.json")), lasting(report("here.json")));
}

TEST_F(Runs, PeersAreJudgedWhereAGlobNamesThem) {
  const std::string named = "reference.peer.ex2.ftz";
  const auto listed = [&](std::vector<std::string> words) {
    words.insert(words.begin(), {"validate", "--list"});
    EXPECT_EQ(run(words), 0) << text("stderr");
    return text("stdout");
  };
  const std::string id = "gdn/fwd/len=40,HK=1,HV=1,K=16,V=16/bf16/seed=1";
  for (const char* globs : {"*", "reference.*"})
    EXPECT_EQ(listed({"--case", id, "--backend", globs}).find("reference.peer."), std::string::npos) << globs;
  for (const char* globs : {"*ftz", "reference.recurrent,reference.peer*"})
    EXPECT_NE(listed({"--case", id, "--backend", globs}).find(named), std::string::npos) << globs;
  const std::string own = file("own.json");
  reports::write_file(own, R"({"schema": "deltagauge.sweep/1", "backend": "reference.recurrent,)" + named +
                               R"(", "cases": [")" + id + R"("]})");
  const std::string lines = listed({own, config()});  // in the sweep that names them and in no other
  EXPECT_NE(lines.find("seed=1 " + named + " accuracy\n"), std::string::npos) << lines;
  EXPECT_EQ(lines.find("reference.peer.", lines.find("len=130")), std::string::npos) << lines;

  for (const char* how : {"--quiet", "--isolate"}) {
    ASSERT_EQ(run({"validate", own, "--backend", named, "--check", "fast", how, "--json", file("r.json")}), 0)
        << text("stderr");
    ASSERT_EQ(report("r.json").results.size(), 1u);
    EXPECT_EQ(report("r.json").results[0].backend, named);
  }
  EXPECT_EQ(run({"validate", "--case", id, "--backend", "reference.peer.nothing"}), 2);
  EXPECT_NE(text("stderr").find(named), std::string::npos) << text("stderr");
  const std::string dump = file("peer.safetensors");
  ASSERT_EQ(run({"case", "dump", id, "--backend", named, "--out", dump}), 0) << text("stderr");
  EXPECT_EQ(run({"validate", "--tensors", dump, "--op", "gdn", "--backend", "file," + named, "--staging", "ex2.ftz"}), 0)
      << text("stderr");
}

TEST_F(Runs, AJobThatTakesTooLongIsAnErrorRowWithItsLimit) {
  EXPECT_EQ(run({"validate", "--case", "gdn/fwd/len=30000,HV=4/seed=1", "--backend", "reference.recurrent", "--timeout",
                 "0.2", "--json", file("r.json")}),
            2);
  const Report r = report("r.json");
  ASSERT_EQ(r.results.size(), 1u);
  EXPECT_EQ(r.results[0].outcome, Outcome::error);
  EXPECT_EQ(r.results[0].reason, "no answer within 0.2 s");
  EXPECT_TRUE(r.results[0].repro.ends_with(" --timeout 0.2")) << r.results[0].repro;
}

TEST_F(Runs, CaseShrinkPrintsASmallCaseThatFailsAgain) {
  const std::string out = file("small.safetensors");
  ASSERT_EQ(run({"case", "shrink", kFailing, "--backend", "reference.recurrent", "--out", out}), 0) << text("stderr");
  const std::string id = line(""), again = line("again: deltagauge ");
  const Problem p = parse_id(id).problem;
  EXPECT_EQ(p.sequences(), 1) << id;
  EXPECT_EQ(p.HV, 1) << id;
  EXPECT_EQ(p.data.kind, "lattice") << id;
  EXPECT_NE(again.find("'" + id + "'"), std::string::npos) << again;
  const Safetensors dumped = read_safetensors(out);
  EXPECT_EQ(dumped.metadata.at("deltagauge.case"), id);
  EXPECT_TRUE(dumped.tensors.contains("o"));
  EXPECT_EQ(WEXITSTATUS(std::system((DELTAGAUGE_BINARY " " + again + " > /dev/null").c_str())), 1) << again;
  EXPECT_EQ(run({"case", "shrink", kFailing, "--backend", "reference.recurrent", "--check", "accuracy"}), 2);
  EXPECT_NE(text("stderr").find("expected a case that fails, got 1 passed"), std::string::npos) << text("stderr");
  EXPECT_EQ(run({"case", "shrink", kFailing, "--check", "speed"}), 2);
}

TEST_F(Runs, ShrinkPutsTheSmallCaseIntoTheWordsOfAFailure) {
  for (const std::vector<std::string>& more : {std::vector<std::string>{}, {"--isolate"}}) {
    std::vector<std::string> words{"validate", "--case",  kFailing,   "--backend", "reference.recurrent",
                                   "--check",  "lattice", "--shrink", "--json",    file("r.json")};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(run(words), 1) << text("stderr");
    const Report r = report("r.json");
    ASSERT_EQ(r.results.size(), 1u);
    EXPECT_EQ(r.results[0].test, kFailing);
    EXPECT_EQ(r.results[0].repro.find("len=5+34+20"), std::string::npos) << r.results[0].repro;
    EXPECT_EQ("deltagauge " + line("again: deltagauge "), r.results[0].repro);
    EXPECT_EQ(WEXITSTATUS(std::system((DELTAGAUGE_BINARY " " + line("again: deltagauge ") + " > /dev/null").c_str())), 1);
  }
}

}  // namespace
}  // namespace deltagauge::validate
