// cp and replay with the deltagauge binary: what they refuse, and lines that show a failure again.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "reports/file.h"
#include "reports/json.h"

namespace deltagauge::validate {
namespace {

namespace fs = std::filesystem;
using reports::Outcome, reports::Report;

class Drivers : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "drivers_" + std::to_string(::getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string file(const std::string& name) const { return folder_ + name; }
  int run(const std::string& args) const {
    const int status =
        std::system((DELTAGAUGE_BINARY " " + args + " >'" + file("stdout") + "' 2>'" + file("stderr") + "'").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  std::string text(const char* stream) const { return reports::read_file(file(stream)); }
  // Exit 2, nothing on stdout and no report.
  void expect_refused(const std::string& args, const std::string& message) const {
    EXPECT_EQ(run(args + " --json '" + file("none.json") + "'"), 2) << args;
    EXPECT_NE(text("stderr").find(message), std::string::npos) << args << ": " << text("stderr");
    EXPECT_EQ(text("stdout"), "") << args;
    EXPECT_FALSE(fs::exists(file("none.json"))) << args;
  }
  std::string folder_;
};

constexpr const char* kCase = " --case gdn/fwd/len=9+9+9,HK=1,HV=1,K=64,V=64/bf16/gate=mild/keys=iid/precise/seed=1";

TEST_F(Drivers, cp_refuses_what_it_does_not_know_or_cannot_hold) {
  const std::string cp = std::string("cp") + kCase;
  expect_refused(cp + " --table zig-zag", "--table: expected one of contiguous zigzag documents rotated scattered, got");
  expect_refused(cp + " --table zigzag --table ''", "expected a value, got none");
  expect_refused(cp + " --backend nope", "--backend: 'nope' matches none of reference.cp.");
  expect_refused(cp + " --backend 'reference.cp.*,cuda.gdn.*'", "--backend: 'cuda.gdn.*' matches none of");
  for (const char* segment : {"65", "2147483648", "9223372036854775744"})
    expect_refused(cp + " --segment " + segment, std::string("in [64, 2147483584], got ") + segment);
  for (const char* segment : {"0", "-64", "64x", "99999999999999999999"})
    expect_refused(cp + " --segment " + segment, "--segment");
  for (const char* degree : {"0", "-1", "1025", "2x", "99999999999999999999"})
    expect_refused(cp + " --degree 2 --degree " + degree, "--degree");
  EXPECT_EQ(run(cp + " --filter nothing"), 3);
}

TEST_F(Drivers, cp_says_what_cuts_anywhere_cost) {
  const std::string json = file("cp.json");
  ASSERT_EQ(run(std::string("cp") + kCase + " --backend reference.cp.chunk64.io --degree 2 --json '" + json + "'"), 0);
  const auto row = reports::load_report(json).results.at(0);
  for (const char* output : {"o", "final_state"}) {
    EXPECT_GT(row.values.at(std::string(output) + ".error_over_unsharded"), 0);
    EXPECT_LE(row.values.at(std::string(output) + ".error_over_budget"), 1);
    char line[100];
    std::snprintf(line, sizeof line, "%.3g", row.values.at(std::string(output) + ".error_over_budget"));
    EXPECT_NE(text("stdout").find(line), std::string::npos) << text("stdout");
  }
  EXPECT_NE(text("stdout").find("error/budget"), std::string::npos);
}

TEST_F(Drivers, replay_refuses_steps_that_are_not_there) {
  const std::string replay = std::string("replay") + kCase + " --backend oracle.f64 --no-times";
  for (const char* step : {"82", "-1", "1e3", "99999999999999999999"}) expect_refused(replay + " --step " + step, "--step");
  EXPECT_EQ(run(replay + " --step 81"), 0) << text("stdout");
  EXPECT_EQ(run(replay + " --step 0 --walk 9223372036854775807"), 0) << text("stdout");
}

// Where there is a GPU nothing fails.
TEST_F(Drivers, a_missing_gpu_that_is_required_fails_again_by_the_line_that_says_so) {
  for (const char* driver : {"validate", "bench", "range", "replay", "cp"}) {
    const std::string json = file(std::string(driver) + ".json");
    const int status =
        run(driver + std::string(kCase) + " --backend 'cuda.*.chunk_sm80' --require-gpu --json '" + json + "'");
    if (status == 0) continue;
    EXPECT_EQ(status, 1) << driver;
    const Report report = reports::load_report(json);
    ASSERT_FALSE(report.results.empty()) << driver;
    for (const auto& row : report.results) {
      ASSERT_TRUE(row.repro.starts_with("deltagauge ")) << driver << ": " << row.repro;
      EXPECT_EQ(run(row.repro.substr(11)), 1) << row.repro;
      EXPECT_NE(text("stdout").find("no GPU"), std::string::npos) << row.repro;
    }
  }
}

}  // namespace
}  // namespace deltagauge::validate
