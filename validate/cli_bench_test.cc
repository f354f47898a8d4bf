// bench and report with the deltagauge binary: times, comparisons, conversions.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>

#include "reports/file.h"
#include "reports/json.h"

namespace deltagauge::validate {
namespace {

namespace fs = std::filesystem;
using reports::Outcome, reports::Report;

constexpr const char* kCase =
    "bench --case gdn/fwd/len=5+0+3,HK=1,HV=2,K=8,V=4/bf16/gate=mild/keys=iid/precise/seed=3 --min-time 0.01 --max-time "
    "0.05 ";
const std::string kRun = std::string(kCase) + "--backend reference.recurrent ";

class Bench : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "bench_" + std::to_string(::getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ + name; }
  // Exit status; stdout and stderr go to files of these names.
  int run(const std::string& args) const {
    const int status =
        std::system((DELTAGAUGE_BINARY " " + args + " >'" + file("stdout") + "' 2>'" + file("stderr") + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  bool says(const char* stream, const std::string& text) const {
    return reports::read_file(file(stream)).find(text) != std::string::npos;
  }
  // A report of one timed row, changed before it is written.
  template <class Change>
  std::string report(const std::string& name, Change change) const {
    EXPECT_EQ(run(kRun + ("--quiet --json " + file("plain.json"))), 0);
    Report r = reports::load_report(file("plain.json"));
    change(r);
    reports::write_file(file(name), reports::to_json(r));
    return file(name);
  }
  std::string folder_;
};

TEST_F(Bench, gives_a_time_behind_its_gate_in_every_form) {
  ASSERT_EQ(run(kRun + ("--report " + file("out") + " --csv " + file("t.csv") + " --gbench " + file("g.json"))), 0);
  EXPECT_TRUE(says("stdout", "median us"));
  const Report r = reports::load_report(file("out/report.json"));
  ASSERT_EQ(r.results.size(), 2U);
  EXPECT_EQ(r.results[0].check, "accuracy");
  EXPECT_TRUE(r.results[1].timing.has_value());
  for (const char* name : {"out/junit.xml", "out/report.html", "out/report.sarif", "out/metrics.txt", "out/trace.pftrace",
                           "out/table.txt", "t.csv", "g.json"})
    EXPECT_GT(fs::file_size(file(name)), 0U) << name;
  EXPECT_EQ(run("report convert " + file("out/report.json") + " --markdown " + file("t.md")), 0);
  EXPECT_EQ(run("report html " + file("out/report.json") + " --out " + file("p.html")), 0);
  EXPECT_EQ(run("report trace " + file("out/report.json") + " --out " + file("t.json")), 0);
  EXPECT_EQ(run("report trace " + file("out/report.json") + " --out " + file("t.txt")), 2);
  EXPECT_TRUE(says("stderr", ".pftrace"));
}

TEST_F(Bench, takes_both_math_modes_and_says_so_in_the_table_and_the_report) {
  ASSERT_EQ(run(kRun + "--both-math --json " + file("both.json")), 0);
  EXPECT_TRUE(says("stdout", "fast rel-L2"));
  const Report r = reports::load_report(file("both.json"));
  ASSERT_EQ(r.results.size(), 5U);
  EXPECT_EQ(r.results[4].check, "math-cpu");
  EXPECT_TRUE(r.results[4].values.contains("precise_over_fast"));
  EXPECT_EQ(run(kRun + "--both-math --list"), 0);
  EXPECT_TRUE(says("stdout", "/fast/"));
}

TEST_F(Bench, skips_without_a_gpu_and_fails_where_one_is_required) {
  const std::string cuda = std::string(kCase) + "--backend cuda.gdn.recurrent ";
  if (run(cuda) == 0) GTEST_SKIP() << "there is a GPU";
  EXPECT_EQ(run(cuda), 3);
  EXPECT_EQ(run(cuda + "--require-gpu"), 1);
  EXPECT_EQ(run(cuda + "--require-gpu --noise 2 --timer eager-hot --timer cpu --json " + file("r.json")), 1);
  const Report r = reports::load_report(file("r.json"));
  ASSERT_EQ(r.results.size(), 1U);
  EXPECT_EQ(r.results[0].repro, "deltagauge bench --case '" + r.results[0].test +
                                    "' --backend cuda.gdn.recurrent --timer eager-hot --require-gpu --min-time 0.01 "
                                    "--max-time 0.05 --noise 2");
}

TEST_F(Bench, diff_finds_a_slower_row_a_lost_one_and_a_failed_gate) {
  const std::string base = report("base.json", [](Report& r) {  // times that the machine has no say in
    r.results[1].timing->samples.clear();
    for (int i = 0; i < 30; ++i) r.results[1].timing->samples.push_back(1e-3 + 1e-6 * (i % 7));
    r.results[1].timing->median = 1.003e-3;
  });
  EXPECT_EQ(run("report diff " + base + " " + base), 0);
  const std::string slow = report("slow.json", [&](Report& r) {
    r = reports::load_report(base);
    for (double& sample : r.results[1].timing->samples) sample *= 2;
    r.results[1].timing->median *= 2;
  });
  EXPECT_EQ(run("report diff " + base + " " + slow), 1);
  EXPECT_TRUE(says("stdout", "regression"));
  const std::string lost = report("lost.json", [&](Report& r) {
    r = reports::load_report(base);
    r.results.pop_back();
  });
  EXPECT_EQ(run("report diff " + base + " " + lost), 1);
  EXPECT_EQ(run("report diff " + base + " " + lost + " --allow-missing"), 0);
  const std::string wrong = report("wrong.json", [&](Report& r) {
    r = reports::load_report(base);
    r.results[0].outcome = Outcome::fail;
    r.results[0].reason = r.results[0].repro = "planted";
    for (double& sample : r.results[1].timing->samples) sample /= 2;
  });
  EXPECT_EQ(run("report diff " + base + " " + wrong), 1);
  EXPECT_TRUE(says("stdout", "invalid"));
  EXPECT_NE(run(kRun + ("--baseline " + base)), 2);  // 0 or 1 is the machine's to say
  EXPECT_TRUE(says("stdout", "interval"));
}

TEST_F(Bench, runs_another_binary_in_turn_and_refuses_one_that_is_none) {
  EXPECT_EQ(run(kRun + ("--quiet --blocks 2 --against " DELTAGAUGE_BINARY)), 0);
  EXPECT_TRUE(says("stdout", "1 same, 0 failed"));
  EXPECT_EQ(run(kRun + ("--blocks 1 --against " + file("nothing"))), 2);
  EXPECT_TRUE(says("stderr", "--against: expected a program that can be run, got " + file("nothing")));
  const auto other = [&](const std::string& script) {
    reports::write_file(file("other"), "#!/bin/sh\n" + script + "\n");
    fs::permissions(file("other"), fs::perms::owner_all);
    EXPECT_EQ(run(kRun + ("--blocks 1 --json " + file("now.json") + " --against " + file("other"))), 2) << script;
    EXPECT_FALSE(fs::exists(file("now.json"))) << script;
  };
  const std::string expected = "expected a report and exit status 0, 1 or 3 from the bench of " + file("other") + ", got ";
  other("exit 0");
  EXPECT_TRUE(says("stderr", expected + "no report and exit status 0"));
  other("exit 2");
  EXPECT_TRUE(says("stderr", expected + "exit status 2"));
  other("kill -SEGV $$");
  EXPECT_TRUE(says("stderr", expected + "signal 11"));
  other("[ -e '" + file("once") + "' ] && exit 0; touch '" + file("once") + "'; exec " DELTAGAUGE_BINARY " \"$@\"");
  EXPECT_TRUE(says("stderr", expected + "no report and exit status 0")) << "not the report of the run before";
  EXPECT_EQ(run(std::string(kCase) + "--filter nothing --blocks 1 --against " DELTAGAUGE_BINARY), 3);
}

TEST_F(Bench, lists_without_outputs_only) {
  for (const char* driver : {"bench", "range", "replay", "cp"}) {
    const std::string args = std::string(driver) + " --case gdn/fwd/len=5,HK=1,HV=2,K=8,V=4/bf16/seed=3 --list";
    EXPECT_EQ(run(args), 0) << driver;
    EXPECT_EQ(run(args + " --html " + file("page.html")), 2) << driver;
    EXPECT_TRUE(says("stderr", "expected no --html beside it")) << driver;
    EXPECT_EQ(run(driver), 2) << driver;
  }
  EXPECT_FALSE(fs::exists(file("page.html")));
}

TEST_F(Bench, history_wants_a_report_of_a_device) {
  const std::string cpu = report("cpu.json", [](Report&) {});
  EXPECT_EQ(run("report history " + file("h.jsonl") + " --add " + cpu), 2);
  EXPECT_FALSE(fs::exists(file("h.jsonl")));
  const std::string gpu = report("gpu.json", [](Report& r) {
    r.device = reports::Device{"a GPU", 90, 132, 13000, 13000, 1980, 3201};
    r.tool.git_sha = std::string(40, 'a');
  });
  EXPECT_EQ(run("report history " + file("h.jsonl") + " --add " + gpu), 0);
  EXPECT_TRUE(says("stdout", "a GPU"));
  EXPECT_EQ(run("report history " + file("h.jsonl") + " --add " + gpu), 2);  // the same run twice
}

}  // namespace
}  // namespace deltagauge::validate
