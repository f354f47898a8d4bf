// --trace with the deltagauge binary: replay, validate and bench show what they did, and report trace of their JSON the
// same.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>

#include "reports/file.h"
#include "reports/json.h"

namespace deltagauge::validate {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class Trace : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "trace_" + std::to_string(::getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string file(const std::string& name) const { return folder_ + name; }
  int run(const std::string& args) const {
    const int status =
        std::system(("OMP_NUM_THREADS=1 " DELTAGAUGE_BINARY " " + args + " >'" + file("stdout") + "' 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  // Runs with both forms of a trace; the events of the Chrome one.
  Json events_of(const std::string& args) const {
    EXPECT_EQ(run(args + " --quiet --trace " + file("t.pftrace") + " --json " + file("r.json")), 0);
    EXPECT_EQ(run("report trace " + file("r.json") + " --out " + file("again.pftrace")), 0);
    EXPECT_EQ(reports::read_file(file("t.pftrace")), reports::read_file(file("again.pftrace"))) << args;
    EXPECT_EQ(run("report trace " + file("r.json") + " --out " + file("t.json")), 0);
    return Json::parse(reports::read_file(file("t.json"))).at("traceEvents");
  }
  std::string folder_;
};

std::map<std::string, int> slices(const Json& events) {
  std::map<std::string, int> names;
  for (const Json& event : events)
    if (event.at("ph") == "B") ++names[event.at("name")];
  return names;
}

constexpr const char* kCase = "--case gdn/fwd/len=5+0+3,HK=1,HV=2,K=8,V=4/bf16/seed=3 --backend reference.recurrent";

TEST_F(Trace, of_replay_ties_the_capture_to_each_replay_and_its_verdict_and_counts_active_tokens) {
  const Json events = events_of(std::string("replay ") + kCase);
  const auto names = slices(events);
  EXPECT_EQ(names.at("capture"), 1);
  for (const char* name : {"replay", "load", "judge", "compare"}) EXPECT_EQ(names.at(name), 82) << name;
  std::map<int, std::string> flows;
  int tokens = 0;
  for (const Json& event : events) {
    const std::string phase = event.at("ph");
    if (phase == "s" || phase == "t" || phase == "f") flows[event.at("id")] += phase;
    tokens += phase == "C" && event.at("name") == "reference.recurrent / active_tokens (tokens)";
  }
  EXPECT_EQ(flows.size(), 82u);
  for (const auto& [flow, ends] : flows) EXPECT_EQ(ends, "stf") << flow;
  EXPECT_EQ(tokens, 82);
}

TEST_F(Trace, of_validate_and_bench_shows_the_stages_of_a_row_in_this_process_and_in_another) {
  for (const char* isolate : {"", " --isolate"}) {
    const auto names = slices(events_of(std::string("validate --check accuracy ") + kCase + isolate));
    for (const char* name : {"inputs", "plan", "run", "oracle", "emulator"}) EXPECT_EQ(names.at(name), 1) << name << isolate;
    for (const char* name : {"budget", "judge"}) EXPECT_EQ(names.at(name), 2) << name << isolate;
  }
  const auto names = slices(events_of(std::string("bench --min-time 0.01 --max-time 0.05 ") + kCase));
  for (const char* name : {"inputs", "plan", "run", "judge", "warm up", "samples"}) EXPECT_EQ(names.at(name), 1) << name;
}

TEST_F(Trace, is_what_keeps_spans_in_a_report) {
  ASSERT_EQ(run(std::string("validate ") + kCase + " --json " + file("plain.json")), 0);
  EXPECT_TRUE(reports::load_report(file("plain.json")).results.at(0).spans.empty());
  ASSERT_EQ(run(std::string("validate ") + kCase + " --report " + file("out")), 0);
  EXPECT_FALSE(reports::load_report(file("out/report.json")).results.at(0).spans.empty());
}

}  // namespace
}  // namespace deltagauge::validate
