// The JSON Schema accepts a real report and the recorded ones, and refuses broken ones (python3-jsonschema, Draft 2020-12).
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "reports/build_info.h"
#include "reports/file.h"
#include "reports/json.h"
#include "reports/sample_report.h"

namespace deltagauge::reports {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// What a shell command prints.
std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen(command.c_str(), "r");
  for (int c; (c = std::fgetc(pipe)) != EOF;) text += static_cast<char>(c);
  ::pclose(pipe);
  return text;
}

class Schema : public testing::Test {
 protected:
  void SetUp() override {
    if (output_of(DELTAGAUGE_PYTHON " -c 'import jsonschema; print(1)' 2>/dev/null") != "1\n")
      GTEST_SKIP() << "needs python3-jsonschema for /usr/bin/python3";
  }
  // The lines of check.py over the reports: "fits PATH" or "refused PATH: where: why".
  static std::vector<std::string> check(const std::vector<std::string>& paths) {
    const std::string folder = std::string(DELTAGAUGE_SOURCE_DIR) + "/reports/schema/";
    std::string command = DELTAGAUGE_PYTHON " " + folder + "check.py " + folder + "report-1.json";
    for (const std::string& path : paths) command += " '" + path + "'";
    std::istringstream output(output_of(command));
    std::vector<std::string> lines;
    for (std::string line; std::getline(output, line);) lines.push_back(line);
    return lines;
  }
  static std::vector<std::string> check(const std::vector<Json>& reports) {
    std::vector<std::string> paths;
    for (const Json& report : reports) {
      paths.push_back(testing::TempDir() + "schema_" + std::to_string(::getpid()) + "_" + std::to_string(paths.size()));
      write_file(paths.back(), report.dump());
    }
    const std::vector<std::string> lines = check(paths);
    for (const std::string& path : paths) fs::remove(path);
    return lines;
  }
  static Json sample() {
    Report report = sample_report();
    report.results.push_back(sample_replay());
    report.results[1].shrunk = ShrunkCase{kSampleCase, "report.shrunk1.safetensors"};
    report.results[4].job = "one gate";
    report.shard = {1, 2};
    report.jobs_left = 3;
    report.tool = this_tool();
    report.host = this_host();
    return Json::parse(to_json(report));
  }
};

TEST_F(Schema, accepts_a_report_with_every_outcome_with_and_without_a_device) {
  Json without = sample();
  without["device"] = nullptr;
  for (const std::string& line : check(std::vector<Json>{sample(), without})) EXPECT_TRUE(line.starts_with("fits ")) << line;
}

TEST_F(Schema, refuses_broken_reports) {
  const struct {
    const char* pointer;
    Json value;
    const char* at;  // the place the schema names: what stands there is wrong, or has a wrong member
  } kBroken[] = {
      {"/schema", "deltagauge.report/2", "/schema:"},
      {"/extra", 1, "/:"},
      {"/tool/git_sha", "abc", "/tool/git_sha:"},
      {"/host/name", "x", "/host:"},
      {"/device/clocks", 1980, "/device:"},
      {"/configs/0/sha256", "xyz", "/configs/0/sha256:"},
      {"/summary/judged", -1, "/summary/judged:"},
      {"/shard/part", 0, "/shard:"},
      {"/jobs_left", -1, "/jobs_left:"},
      {"/results/1/shrunk/file", "", "/results/1/shrunk/file:"},
      {"/results/0/outcome", "ok", "/results/0/outcome:"},
      {"/results/0/reason", "a pass has no reason", "/results/0/reason:"},
      {"/results/0/note", "", "/results/0/note:"},
      {"/results/1/repro", "", "/results/1/repro:"},
      {"/results/2/reason", "", "/results/2/reason:"},
      {"/results/0/extra", 1, "/results/0:"},
      {"/results/0/tensors/o/rel_l2", "NaN", "/results/0/tensors/o/rel_l2:"},
      {"/results/0/tensors/o/p", 1, "/results/0/tensors/o:"},
      {"/results/0/tensors/o/ulp/p50", nullptr, "/results/0/tensors/o/ulp/p50:"},
      {"/results/0/tensors/o/worst/index/0", -1, "/results/0/tensors/o/worst:"},
      {"/results/0/spans/1/depth", -1, "/results/0/spans/1/depth:"},
      {"/results/0/spans/1/end", 1, "/results/0/spans/1:"},
      {"/results/0/tensors/o/budget", 1, "/results/0/tensors/o/budget:"},
  };
  std::vector<Json> reports;
  for (const auto& broken : kBroken) {
    reports.push_back(sample());
    reports.back()[Json::json_pointer(broken.pointer)] = broken.value;
  }
  reports.push_back(sample());
  reports.back()["results"][1].erase("repro");  // a failure must say how to see it again
  reports.push_back(sample());
  reports.back().erase("summary");
  const std::vector<std::string> lines = check(reports);
  ASSERT_EQ(lines.size(), reports.size());
  for (std::size_t i = 0; i < lines.size(); ++i) {
    EXPECT_TRUE(lines[i].starts_with("refused ")) << lines[i];
    if (i < std::size(kBroken)) {
      EXPECT_NE(lines[i].find(std::string(": ") + kBroken[i].at), std::string::npos) << lines[i];
    }
  }
}

std::vector<std::string> recorded() {
  const fs::path folder = fs::path(DELTAGAUGE_SOURCE_DIR) / "reports" / "recorded";
  std::vector<std::string> paths;
  if (!fs::exists(folder)) return paths;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".json") paths.push_back(entry.path().string());
  return paths;
}

TEST_F(Schema, accepts_every_recorded_report) {
  if (recorded().empty()) GTEST_SKIP() << "nothing under reports/recorded";
  for (const std::string& line : check(recorded())) EXPECT_TRUE(line.starts_with("fits ")) << line;
}

TEST(Recorded, reports_passed_on_a_device_and_say_which_commit) {
  if (recorded().empty()) GTEST_SKIP() << "nothing under reports/recorded";
  for (const std::string& path : recorded()) {
    const Report report = load_report(path);
    EXPECT_EQ(report.exit_status(), 0) << path;
    EXPECT_TRUE(report.device) << path;
    EXPECT_EQ(report.tool.git_sha.size(), 40u) << path;
  }
}

// The ceilings of the config are what the best other kernel reached.
TEST(Recorded, chunk_sm90_halves_the_error_of_the_best_other_kernel_where_keys_resemble_each_other) {
  const std::string root = DELTAGAUGE_SOURCE_DIR;
  const Json config = Json::parse(read_file(root + "/configs/gdn/accuracy.json"));
  const Report report = load_report(root + "/reports/recorded/h200/accuracy.json");
  int rows = 0, halved = 0;
  for (const Json& group : config["grid"]) {
    if (!group.contains("ceilings")) continue;
    const std::string name = group["name"], keys = group["axes"]["keys"];
    const bool resemble = keys != "iid" && keys != "rho=0.9";
    for (const Result& row : report.results) {
      if (row.name != name || row.backend != "cuda.gdn.chunk_sm90" || row.check != "accuracy") continue;
      ++rows;
      halved += resemble;
      for (const Json& ceiling : group["ceilings"]) {
        const TensorMetrics& m = row.tensors.at(ceiling["tensor"]);
        const double got = ceiling["metric"] == "rel_l2" ? m.rel_l2 : m.worst_row;
        EXPECT_LE(got, ceiling["value"].get<double>() / (resemble ? 2 : 1)) << name << ": " << ceiling["metric"];
      }
    }
  }
  EXPECT_EQ(rows, 8);
  EXPECT_EQ(halved, 4);
}

}  // namespace
}  // namespace deltagauge::reports
