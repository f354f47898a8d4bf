// Runs that are split, interrupted, killed, taken up again, isolated and shrunk, with the deltagauge binary.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <sstream>
#include <thread>

#include "core/problem.h"
#include "reports/compare/merge.h"
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
  for (Result& row : report.results) {
    row.seconds = 0;
    if (row.timing) row.timing = reports::Timing{};
  }
  if (sorted)
    std::sort(report.results.begin(), report.results.end(), [](const Result& a, const Result& b) {
      return std::tie(a.test, a.backend, a.check, a.name) < std::tie(b.test, b.backend, b.check, b.name);
    });
  return reports::to_json(report);
}

constexpr const char *kSmall = R"("len": "40+30+26", "K": 16, "V": 16)", *kLarge = R"("len": "130+90+70")";

// A subcommand on one backend: of every case, so many jobs and rows. slow: axes of a case that takes some 0.1 s.
struct Command {
  const char* name;
  std::vector<std::string> flags;
  std::size_t jobs, rows;
  const char* slow;
};
const std::vector<Command>& commands() {
  static const std::vector<Command> all{
      {"validate", {"--backend", "reference.recurrent", "--check", "accuracy", "--check", "causal"}, 2, 2, kLarge},
      {"bench", {"--backend", "reference.recurrent", "--min-time", "0.02", "--max-time", "0.04"}, 1, 2, kSmall},
      {"range", {"--backend", "reference.recurrent", "--quantity", "v"}, 2, 2, kSmall},
      {"cp", {"--backend", "reference.cp.chunk64.io", "--degree", "2", "--table", "contiguous"}, 1, 1, kLarge},
      {"replay", {"--backend", "reference.recurrent", "--no-times"}, 1, 1, kSmall},
  };
  return all;
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
    ::setenv("OMP_NUM_THREADS", "1", 1);  // teams of threads wait for each other where cores are shared; no result changes
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
  // Cases, a seed each, by a subcommand.
  std::vector<std::string> seeds(const Command& command, const std::string& name, int cases,
                                 const std::vector<std::string>& more = {}, const char* sizes = kSmall) const {
    std::string list;
    for (int seed = 1; seed <= cases; ++seed) list += (seed > 1 ? ", " : "") + std::to_string(seed);
    reports::write_file(file("seeds.json"), R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"HK": 1, "HV": 2, )" +
                                                std::string(sizes) + R"(, "seed": [)" + list + "]}}]}");
    std::vector<std::string> words{command.name, file("seeds.json"), "--json", file(name)};
    words.insert(words.end(), command.flags.begin(), command.flags.end());
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  // The process that this one started last, once there is one.
  pid_t child_of(pid_t parent) const {
    const std::string path = "/proc/" + std::to_string(parent) + "/task/" + std::to_string(parent) + "/children";
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1)))
      if (const std::string children = reports::read_file(path); !children.empty()) return std::stoi(children);
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

TEST_F(Runs, EverySubcommandSplitsAndJoins) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.name);
    ASSERT_EQ(run(seeds(command, "whole.json", 3)), 0) << text("stderr");
    ASSERT_EQ(run(seeds(command, "2.json", 3, {"--shard", "2/2"})), 0) << text("stderr");
    ASSERT_EQ(run(seeds(command, "1.json", 3, {"--shard=1/2", "--quiet"})), 0) << text("stderr");
    ASSERT_EQ(run({"report", "merge", file("2.json"), file("1.json"), "--json", file("joined.json")}), 0) << text("stderr");
    EXPECT_EQ(report("1.json").results.size(), 2 * command.rows);
    EXPECT_EQ(lasting(report("joined.json"), true), lasting(report("whole.json"), true));
    std::vector<std::string> words = report("whole.json").argv;
    words.erase(std::find(words.begin(), words.end(), "--json"), std::find(words.begin(), words.end(), "--json") + 2);
    EXPECT_EQ(report("joined.json").argv, words);
    EXPECT_EQ(run({"report", "merge", file("1.json"), "--json", file("half.json")}), 2);
    EXPECT_NE(text("stderr").find("expected all 2 shards, got none of 2/2"), std::string::npos) << text("stderr");
    EXPECT_FALSE(fs::exists(file("half.json")));
  }
}

TEST_F(Runs, EverySubcommandCanBeInterruptedAndTakenUpAgain) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.name);
    constexpr int kCases = 6;
    ASSERT_EQ(run(seeds(command, "whole.json", kCases, {}, command.slow)), 0) << text("stderr");
    const pid_t child = start(seeds(command, "part.json", kCases, {}, command.slow));
    wait_for("part.json.partial");
    ::kill(child, SIGINT);
    ASSERT_EQ(wait(child), 2);
    const Report part = report("part.json");
    ASSERT_GT(part.jobs_left, 0);
    const std::size_t jobs = kCases * command.jobs;
    EXPECT_NE(
        text("stderr").find("interrupted, " + std::to_string(part.jobs_left) + " of " + std::to_string(jobs) + " jobs"),
        std::string::npos)
        << text("stderr");
    EXPECT_FALSE(fs::exists(file("part.json.partial")));
    EXPECT_EQ(run({"report", "show", file("part.json")}), 2);
    EXPECT_NE(text("stdout").find("unfinished: " + std::to_string(part.jobs_left) + " jobs left"), std::string::npos);
    EXPECT_EQ(run({"report", "diff", file("part.json"), file("part.json")}), 2);
    EXPECT_NE(text("stderr").find("expected a finished report"), std::string::npos) << text("stderr");
    EXPECT_EQ(run({"report", "merge", file("part.json"), "--json", file("joined.json")}), 2);
    EXPECT_NE(text("stderr").find("expected a finished run"), std::string::npos) << text("stderr");
    ASSERT_EQ(run(seeds(command, "again.json", kCases, {"--resume", file("part.json")}, command.slow)), 0) << text("stderr");
    EXPECT_EQ(lasting(report("again.json")), lasting(report("whole.json")));
    for (std::size_t i = 0; i < part.results.size(); ++i)
      EXPECT_EQ(report("again.json").results[i].seconds, part.results[i].seconds) << "taken over";
  }
}

TEST_F(Runs, AnInterruptOfBenchAgainstKeepsTheBlocksThatEnded) {
  const std::vector<std::string> words{"bench",
                                       "--case",
                                       "gdn/fwd/len=3,K=8,V=8/seed=1",
                                       "--backend",
                                       "reference.recurrent",
                                       "--min-time",
                                       "0.01",
                                       "--max-time",
                                       "0.02",
                                       "--against",
                                       DELTAGAUGE_BINARY,
                                       "--blocks",
                                       "500"};
  std::vector<std::string> first = words;
  first.insert(first.end(), {"--json", file("r.json")});
  const pid_t child = start(first);
  wait_for("stderr");
  while (text("stderr").find("block 2 of 500") == std::string::npos)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  ::kill(child, SIGINT);
  EXPECT_EQ(wait(child), 2);
  const auto left = report("r.json").jobs_left;
  EXPECT_GT(left, 0);
  EXPECT_NE(text("stderr").find(std::to_string(left) + " of 500 blocks left"), std::string::npos) << text("stderr");
  for (const std::vector<std::string>& more :
       std::vector<std::vector<std::string>>{{"--resume", file("r.json")}, {"--isolate"}, {"--timeout", "3"}}) {
    std::vector<std::string> other = words;
    other.insert(other.end(), more.begin(), more.end());
    EXPECT_EQ(run(other), 2);
    EXPECT_NE(text("stderr").find("--against: expected no " + (more[0] == "--resume" ? more[0] : "--isolate or --timeout")),
              std::string::npos)
        << text("stderr");
  }
}

TEST_F(Runs, NoOutputIsPartOfTheCommandThatIsCompared) {
  ASSERT_EQ(run({"validate", "--help"}), 0);
  const std::string help = text("stdout");
  const auto from = help.find("\nOutputs:"), to = help.find("\nOptions:", from);
  ASSERT_NE(to, std::string::npos) << help;
  std::istringstream outputs(help.substr(from, to - from));
  int flags = 0;
  for (std::string word; outputs >> word;)
    if (word.starts_with("--") && word.size() > 2) {
      ++flags;
      EXPECT_TRUE(reports::compare::words_of_all({"deltagauge", word + "=x"}).empty()) << word;
    }
  EXPECT_EQ(flags, 13);
}

TEST_F(Runs, EverySubcommandOutlivesAChildThatIsKilledOrHangs) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.name);
    ASSERT_EQ(run(seeds(command, "here.json", 2)), 0) << text("stderr");
    ASSERT_EQ(run(seeds(command, "apart.json", 2, {"--isolate"})), 0) << text("stderr");
    EXPECT_EQ(lasting(report("apart.json")), lasting(report("here.json")));
    const struct {
      std::vector<std::string> flags;
      int signal;
      const char* reason;
    } kEnds[] = {{{"--isolate"}, SIGKILL, "crashed: SIGKILL"}, {{"--timeout", "5"}, SIGSTOP, "no answer within 5 s"}};
    for (const auto& end : kEnds) {
      const pid_t parent = start(seeds(command, "r.json", 2, end.flags));
      ::kill(child_of(parent), end.signal);  // before its first job
      EXPECT_EQ(wait(parent), 2);
      const Report r = report("r.json");
      ASSERT_EQ(r.results.size(), 2 * command.rows);
      const std::size_t lost = command.rows / command.jobs;  // rows of the first job
      for (std::size_t i = 0; i < r.results.size(); ++i) {
        EXPECT_EQ(r.results[i].outcome, i < lost ? Outcome::error : Outcome::pass) << i << r.results[i].reason;
        EXPECT_EQ(r.results[i].reason, i < lost ? end.reason : "") << i;
        EXPECT_EQ(r.results[i].repro.starts_with("deltagauge " + std::string(command.name) + " --case "), i < lost);
      }
      EXPECT_EQ(r.jobs_left, 0);
      ASSERT_EQ(run(seeds(command, "again.json", 2, {"--resume", file("r.json")})), 0) << "broken rows are asked again";
      EXPECT_EQ(lasting(report("again.json")), lasting(report("here.json")));
    }
  }
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

TEST_F(Runs, ResumeRefusesAReportOfAnotherCommand) {
  for (const Command& command : commands()) {
    SCOPED_TRACE(command.name);
    ASSERT_EQ(run(seeds(command, "r.json", 1)), 0) << text("stderr");
    for (const std::vector<std::string>& other : std::vector<std::vector<std::string>>{
             {"--oracle", "dd"}, {"--seed", "7"}, {"--set", "math=fast"}, {"--filter", "gdn*"}, {"--require-gpu"}}) {
      std::vector<std::string> more = other;
      more.insert(more.end(), {"--resume", file("r.json")});
      EXPECT_EQ(run(seeds(command, "again.json", 1, more)), 2) << other[0];
      EXPECT_NE(text("stderr").find("command: expected "), std::string::npos) << text("stderr");
      EXPECT_NE(text("stderr").find(other[0]), std::string::npos) << text("stderr");
    }
    EXPECT_FALSE(fs::exists(file("again.json")));
  }
  std::vector<std::string> words = sweep("r.json", {"--resume", file("none.json")});
  EXPECT_EQ(run(words), 2);
}

TEST_F(Runs, ACaseThatTwoConfigsHoldIsTakenOverTwice) {
  std::vector<std::string> words = seeds(commands()[0], "twice.json", 2);
  std::string other = text("seeds.json");  // for other backends, so that it is another question
  other.insert(1, R"("backend": "reference.*", )");
  reports::write_file(file("other.json"), other);
  words.insert(words.begin() + 1, file("other.json"));
  ASSERT_EQ(run(words), 0) << text("stderr");
  words.insert(words.end(), {"--resume", file("twice.json"), "--json", file("again.json")});
  words.erase(std::find(words.begin(), words.end(), "--json"), std::find(words.begin(), words.end(), "--json") + 2);
  ASSERT_EQ(run(words), 0) << text("stderr");
  EXPECT_EQ(report("twice.json").results.size(), 2 * 2 * commands()[0].rows);
  EXPECT_EQ(lasting(report("again.json")), lasting(report("twice.json")));
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
  const std::vector<std::string> on_host{"--host", "mode=late,seed=3"};
  for (const std::vector<std::string>& more :
       {std::vector<std::string>{}, {"--isolate"}, on_host, {on_host[0], on_host[1], "--isolate"}}) {
    const bool host = more.size() > 1;
    std::vector<std::string> words{
        "validate", "--case",  kFailing,   "--backend", host ? "host.gdn.recurrent" : "reference.recurrent",
        "--check",  "lattice", "--shrink", "--json",    file("r.json")};
    words.insert(words.end(), more.begin(), more.end());
    ASSERT_EQ(run(words), 1) << text("stderr");
    const Report r = report("r.json");
    ASSERT_EQ(r.results.size(), 1u);
    EXPECT_EQ(r.results[0].test, kFailing);
    EXPECT_EQ(r.results[0].repro.find("len=5+34+20"), std::string::npos) << r.results[0].repro;
    EXPECT_EQ("deltagauge " + line("again: deltagauge "), r.results[0].repro);
    ASSERT_TRUE(r.results[0].shrunk);
    EXPECT_EQ(r.results[0].shrunk->file, file("r.shrunk1.safetensors"));
    EXPECT_EQ(line("tensors: "), r.results[0].shrunk->file);
    EXPECT_NE(r.results[0].repro.find("'" + r.results[0].shrunk->test + "'"), std::string::npos) << r.results[0].repro;
    const Safetensors dumped = read_safetensors(r.results[0].shrunk->file);
    EXPECT_EQ(dumped.metadata.at("deltagauge.case"), r.results[0].shrunk->test);
    EXPECT_TRUE(dumped.tensors.contains("o"));
    reports::write_file(file("r.shrunk1.safetensors"), "kept");
    ASSERT_EQ(run(words), 1) << text("stderr");
    EXPECT_EQ(report("r.json").results[0].shrunk->file, file("r.shrunk2.safetensors"));
    EXPECT_EQ(text("r.shrunk1.safetensors"), "kept");
    for (const char* name : {"r.shrunk1.safetensors", "r.shrunk2.safetensors"}) fs::remove(file(name));
    EXPECT_EQ(WEXITSTATUS(std::system((DELTAGAUGE_BINARY " " + line("again: deltagauge ") + " > /dev/null").c_str())), 1);
  }
}

}  // namespace
}  // namespace deltagauge::validate
