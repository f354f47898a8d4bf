// The Chrome form parses, nests and keeps the times.
#include "reports/trace/chrome.h"

#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "reports/file.h"
#include "reports/sample_report.h"
#include "reports/trace/from_report.h"
#include "reports/trace/pftrace.h"
#include "reports/trace/sample_trace.h"
#include "reports/trace/write.h"

namespace deltagauge::reports::trace {
namespace {

using Json = nlohmann::json;

Json events_of(const std::string& text) { return Json::parse(text).at("traceEvents"); }

void expect_nested(const Json& events) {
  std::map<std::pair<int, int>, int> open;
  double last = 0;
  for (const Json& event : events) {
    const std::string phase = event.at("ph");
    int& slices = open[{event.at("pid"), event.at("tid")}];
    if (phase == "B") ++slices;
    if (phase == "E") {
      EXPECT_GE(--slices, 0);
    }
    if (phase == "M") continue;
    EXPECT_GE(event.at("ts").get<double>(), last);
    last = event.at("ts");
  }
  for (const auto& [thread, slices] : open) EXPECT_EQ(slices, 0);
}

std::map<std::string, int> phases_of(const Json& events) {
  std::map<std::string, int> phases;
  for (const Json& event : events) ++phases[event.at("ph")];
  return phases;
}

TEST(Chrome, OfEverythingParsesAndNests) {
  const Json events = events_of(to_chrome(sample_trace()));
  expect_nested(events);
  const std::map<std::string, int> phases = phases_of(events);
  EXPECT_EQ(phases.at("B"), phases.at("E"));
  EXPECT_EQ(phases.at("C"), 5);
  EXPECT_EQ(phases.at("i"), 1);
  for (const char* end : {"s", "t", "f"}) EXPECT_EQ(phases.at(end), 1) << end;
}

TEST(Chrome, TimesAreMicrosecondsWithFractions) {
  const std::string text = to_chrome(sample_trace());
  EXPECT_NE(text.find(R"("ts":2.001,)"), std::string::npos);
  EXPECT_NE(text.find(R"("ts":6.5,)"), std::string::npos);
}

TEST(Chrome, ThreadsAreNamedByTheirPath) {
  const std::string text = to_chrome(sample_trace());
  EXPECT_NE(text.find("replays / kernels / stages"), std::string::npos);
  EXPECT_NE(text.find("replays / row_ratio (x budget)"), std::string::npos);
}

TEST(Chrome, FailuresCarryTheirCase) {
  for (const Json& event : events_of(to_chrome(sample_trace()))) {
    if (event.at("ph") != "i") continue;
    EXPECT_EQ(event.at("cat"), kFailCategory);
    EXPECT_EQ(event.at("args").at("case"), kFailedCase);
  }
}

TEST(Chrome, OfAReportParsesAndNests) { expect_nested(events_of(to_chrome(trace_of(sample_report())))); }

TEST(Chrome, OfAReplayShowsItsReplaysFlowsAndActiveTokens) {
  Report report = sample_report();
  report.results = {sample_replay()};
  const Json events = events_of(to_chrome(trace_of(report)));
  expect_nested(events);
  std::map<std::string, int> names;
  std::map<int, std::string> flows;
  std::vector<double> tokens;
  for (const Json& event : events) {
    const std::string phase = event.at("ph");
    if (phase == "B") ++names[event.at("name")];
    if (phase == "s" || phase == "t" || phase == "f") flows[event.at("id")] += phase;
    if (phase == "C" && event.at("name") == "cuda.gdn.chunk_sm80 / active_tokens (tokens)") {
      tokens.push_back(event.at("args").at("tokens"));
    }
  }
  for (const char* name : {"replay", "load", "read back", "judge"}) EXPECT_EQ(names[name], 2) << name;
  EXPECT_EQ(flows, (std::map<int, std::string>{{1, "sttf"}, {2, "stttf"}}));
  EXPECT_EQ(tokens, (std::vector<double>{129, 65}));
}

TEST(Chrome, OverTheLimitIsShorter) {
  const std::size_t size = to_chrome(sample_trace()).size();
  const std::string less = to_chrome(sample_trace(), size - 1);
  expect_nested(events_of(less));
  EXPECT_EQ(less.find("Ainv"), std::string::npos);
}

TEST(WriteTrace, TheEndingNamesTheFormat) {
  const std::string folder = testing::TempDir(), stem = folder + "deltagauge_write_trace";
  write_trace(sample_trace(), stem + ".pftrace");
  write_trace(sample_trace(), stem + ".json");
  EXPECT_EQ(read_file(stem + ".pftrace"), to_pftrace(sample_trace()));
  EXPECT_EQ(read_file(stem + ".json"), to_chrome(sample_trace()));
  EXPECT_THROW(require_trace_path("a.txt"), Error);
  EXPECT_THROW(write_trace(sample_trace(), stem), Error);
}

}  // namespace
}  // namespace deltagauge::reports::trace
