// OpenMetrics: every line follows the grammar, whatever the names; promtool takes it as Prometheus' text format.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <sstream>

#include "reports/formats/formats.h"
#include "reports/formats/hostile_report.h"

namespace deltagauge::reports {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

bool has(const std::string& text, const std::string& line) {
  const auto lines = lines_of(text);
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

// Skips a label set: key="value",... with \\ \" \n as the only escapes. The place behind it, or npos.
std::size_t behind_labels(const std::string& line, std::size_t at) {
  for (;;) {
    at = line.find("=\"", at);
    if (at == std::string::npos) return at;
    for (at += 2; at < line.size() && line[at] != '"'; ++at)
      if (line[at] == '\\' && std::string("\\\"n").find(line[++at]) == std::string::npos) return std::string::npos;
    if (++at >= line.size() || (line[at] != ',' && line[at] != '}')) return std::string::npos;
    if (line[at] == '}') return at + 1;
  }
}

void expect_grammar(const std::string& text) {
  const std::regex comment("# (HELP|TYPE|UNIT) deltagauge_[a-z0-9_]+ [^\\n]+|# EOF");
  const std::regex value(" (NaN|[+-]Inf|-?[0-9.]+(e[+-]?[0-9]+)?)");
  std::set<std::string> seen;
  for (const std::string& line : lines_of(text)) {
    if (line.starts_with("#")) {
      EXPECT_TRUE(std::regex_match(line, comment)) << line;
      continue;
    }
    const std::size_t brace = line.find('{'), end = brace == std::string::npos ? line.find(' ') : behind_labels(line, brace);
    ASSERT_NE(end, std::string::npos) << line;
    EXPECT_TRUE(std::regex_match(line.substr(end), value)) << line;
    EXPECT_TRUE(seen.insert(line.substr(0, end)).second) << "twice: " << line;
  }
  EXPECT_EQ(text.find('\r'), std::string::npos);
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
}

TEST(OpenMetrics, gives_outcomes_ratios_and_times_in_base_units) {
  const std::string text = to_openmetrics(sample_report());
  const std::string labels = std::string("{case=\"") + kSampleCase + "\",backend=\"cuda.gdn.chunk_sm80\",check=\"";
  EXPECT_TRUE(has(text, "deltagauge_results{outcome=\"pass\"} 2")) << text;
  EXPECT_TRUE(has(text, "deltagauge_results{outcome=\"error\"} 1"));
  EXPECT_TRUE(has(text, "deltagauge_row_ratio" + labels + "accuracy\",tensor=\"o\"} 0.78"));
  EXPECT_TRUE(has(text, "# UNIT deltagauge_time_median_seconds seconds"));
  EXPECT_TRUE(has(text, "deltagauge_time_median_seconds" + labels + "graph-hot\"} 1.25e-05"));
  EXPECT_NE(text.find("recurrent\",check=\"accuracy\",tensor=\"o\"} +Inf\n"), std::string::npos);
  EXPECT_NE(text.find("recurrent\",check=\"accuracy\",tensor=\"o\"} NaN\n"), std::string::npos);
}

TEST(OpenMetrics, says_how_many_jobs_are_left) {
  Report report = sample_report();
  EXPECT_TRUE(has(to_openmetrics(report), "deltagauge_jobs_left 0"));
  report.jobs_left = 3;
  EXPECT_TRUE(has(to_openmetrics(report), "deltagauge_jobs_left 3"));
}

TEST(OpenMetrics, follows_the_grammar_whatever_the_names) {
  expect_grammar(to_openmetrics(sample_report()));
  expect_grammar(to_openmetrics(hostile_report()));
  expect_grammar(to_openmetrics(Report{}));
}

TEST(OpenMetrics, holds_a_label_set_once_and_keeps_the_later_row) {
  Report report = sample_report();
  report.results.push_back(report.results[0]);
  report.results.back().tensors["o"].row_ratio = 0.5;
  const std::string text = to_openmetrics(report);
  expect_grammar(text);
  EXPECT_NE(text.find("chunk_sm80\",check=\"accuracy\",tensor=\"o\"} 0.5\n"), std::string::npos);
}

TEST(OpenMetrics, passes_promtool) {
  if (!have("promtool")) GTEST_SKIP() << "needs promtool (package prometheus)";
  for (const Report& report : {sample_report(), hostile_report(), Report{}})
    EXPECT_EQ(answer_to(to_openmetrics(report), "promtool check metrics"), "exit 0");
}

}  // namespace
}  // namespace deltagauge::reports
