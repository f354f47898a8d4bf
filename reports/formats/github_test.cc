// GitHub: workflow commands are one line each, however hostile their text, and at most ten of a kind; the summary's tables
// hold.
#include <gtest/gtest.h>

#include <algorithm>
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

TEST(GithubAnnotations, name_the_file_the_backend_the_check_and_the_reason) {
  const auto lines = lines_of(to_github_annotations(sample_report()));
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0], std::string("::error file=configs/gdn/smoke.json,title=cuda.gdn.recurrent accuracy failed::") +
                          kSampleCase + ": o: 2 values are not finite%0Aagain: deltagauge validate --case '" + kSampleCase +
                          "'");
  EXPECT_EQ(lines[1],
            "::error file=configs/gdn/smoke.json,title=reference.l2norm accuracy broke::"
            "l2norm/fwd/len=3,HK=1,K=64/f32/precise/seed=1: x: expected 2 dimensions, got 3");
  EXPECT_EQ(lines[2], "::notice title=deltagauge::1 rows were skipped");
}

TEST(GithubAnnotations, are_at_most_ten_and_say_how_many_more_there_are) {
  Report report = sample_report();
  const Result failed = report.results[1];
  report.results.assign(10, failed);
  EXPECT_EQ(lines_of(to_github_annotations(report)).size(), 10u);
  EXPECT_EQ(lines_of(to_github_annotations(report))[9], lines_of(to_github_annotations(report))[0]);
  report.results.push_back(failed);
  const auto lines = lines_of(to_github_annotations(report));
  EXPECT_EQ(lines.size(), 10u);
  EXPECT_EQ(lines[9], "::error title=deltagauge::2 more rows failed or broke");
}

TEST(GithubAnnotations, cannot_be_broken_out_of) {
  const auto lines = lines_of(to_github_annotations(hostile_report()));
  ASSERT_EQ(lines.size(), 3u);
  for (const std::string& line : {lines[0], lines[1]}) {
    EXPECT_EQ(line.find('\r'), std::string::npos);
    const std::string properties = line.substr(8, line.find("::", 2) - 8);
    EXPECT_EQ(std::count(properties.begin(), properties.end(), ','), 1) << properties;
    EXPECT_EQ(std::count(properties.begin(), properties.end(), ':'), 0) << properties;
    EXPECT_NE(line.find("|\\|%250A%25,;:`"), std::string::npos);  // the message keeps commas and colons
  }
}

TEST(GithubAnnotations, warn_when_nothing_was_judged) {
  EXPECT_EQ(to_github_annotations(Report{}), "::warning title=deltagauge::nothing was judged\n");
}

TEST(GithubAnnotations, say_that_a_run_is_unfinished) {
  Report report = sample_report();
  report.jobs_left = 3;
  EXPECT_NE(to_github_annotations(report).find("::error title=deltagauge::unfinished, 3 jobs left\n"), std::string::npos);
  report.results = {report.results[0]};
  EXPECT_NE(to_github_summary(report).find("deltagauge: unfinished"), std::string::npos);
}

TEST(GithubSummary, counts_and_shows_failures_and_timings) {
  const std::string text = to_github_summary(sample_report());
  EXPECT_TRUE(text.starts_with("## deltagauge: failed\n")) << text;
  EXPECT_NE(text.find("| 3 | 2 | 1 | 1 | 1 |\n"), std::string::npos);
  EXPECT_NE(text.find("### Failed and broken"), std::string::npos);
  EXPECT_NE(text.find(" | o: 2 values are not finite | "), std::string::npos);
  EXPECT_NE(text.find(" | graph-hot | 12.50 | 12.25 | 12.75 | 0.08 | 6.76 | 2.0 |\n"), std::string::npos) << text;
}

TEST(GithubSummary, stays_below_the_size_that_github_takes) {
  Report report = hostile_report();
  const Result failed = report.results[1];
  report.results.assign(500, failed);
  const std::string text = to_github_summary(report);
  EXPECT_LT(text.size(), std::size_t{1} << 20);
  EXPECT_NE(text.find(" more rows do not fit here.\n"), std::string::npos);
}

}  // namespace
}  // namespace deltagauge::reports
