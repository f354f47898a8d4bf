// CSV and Markdown: every row has every column, and hostile text arrives as it was.
#include <gtest/gtest.h>

#include <sstream>

#include "reports/formats/formats.h"
#include "reports/formats/hostile_report.h"
#include "reports/formats/markdown.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;

// Rows of RFC 4180 text.
std::vector<std::vector<std::string>> rows_of(const std::string& csv) {
  std::vector<std::vector<std::string>> rows = {{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < csv.size(); ++i) {
    std::string& field = rows.back().back();
    if (csv[i] == '"' && quoted && i + 1 < csv.size() && csv[i + 1] == '"') {
      field += csv[++i];
    } else if (csv[i] == '"') {
      quoted = !quoted;
    } else if (!quoted && csv[i] == ',') {
      rows.back().emplace_back();
    } else if (!quoted && csv.compare(i, 2, "\r\n") == 0) {
      ++i;
      rows.push_back({""});
    } else {
      field += csv[i];
    }
  }
  rows.pop_back();
  return rows;
}

std::string field(const std::vector<std::vector<std::string>>& rows, std::size_t row, const std::string& column) {
  for (std::size_t i = 0; i < rows[0].size(); ++i)
    if (rows[0][i] == column) return rows.at(row).at(i);
  return "no column " + column;
}

TEST(Csv, has_a_row_a_result_and_tensor_and_every_column_in_it) {
  const auto rows = rows_of(to_csv(sample_report()));
  ASSERT_EQ(rows.size(), 7u);  // a heading; two tensors, one, and three results without any
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  EXPECT_EQ(field(rows, 2, "tensor"), "o");
  EXPECT_EQ(field(rows, 2, "row_ratio"), "0.78");
  EXPECT_EQ(field(rows, 2, "worst_index"), "70 3 17");
  EXPECT_EQ(field(rows, 2, "time_median"), "");
  EXPECT_EQ(field(rows, 3, "row_ratio"), "inf");
  EXPECT_EQ(field(rows, 3, "element_ratio"), "nan");
  std::size_t timed = 1;
  while (field(rows, timed, "check") != "graph-hot") ++timed;
  EXPECT_EQ(field(rows, timed, "time_median"), "1.25e-05");
  EXPECT_EQ(field(rows, timed, "settled"), "true");
}

TEST(Csv, gives_hostile_text_back_and_does_not_touch_what_looks_like_a_formula) {
  const Report report = hostile_report();
  const auto rows = rows_of(to_csv(report));
  ASSERT_EQ(rows.size(), 7u);
  for (const auto& row : rows) EXPECT_EQ(row.size(), rows[0].size());
  EXPECT_TRUE(field(rows, 1, "case").starts_with("=gdn/fwd/"));
  EXPECT_EQ(field(rows, 3, "case"), clean(report.results[1].test));
  EXPECT_EQ(field(rows, 3, "reason"), clean(report.results[1].reason));
  EXPECT_EQ(field(rows, 3, "repro"), clean(report.results[1].repro));
}

TEST(Csv, keeps_columns_in_place_when_the_first_fields_are_empty) {
  Report report;
  report.results.emplace_back();
  const auto rows = rows_of(to_csv(report));
  EXPECT_EQ(rows.at(1).size(), rows[0].size());
  EXPECT_EQ(field(rows, 1, "outcome"), "error");
}

TEST(Csv, has_an_error_more_where_a_run_is_unfinished) {
  Report report = sample_report();
  report.jobs_left = 3;
  const auto rows = rows_of(to_csv(report));
  ASSERT_EQ(rows.size(), 8u);
  EXPECT_EQ(rows[7].size(), rows[0].size());
  EXPECT_EQ(field(rows, 7, "case"), "unfinished");
  EXPECT_EQ(field(rows, 7, "outcome"), "error");
  EXPECT_EQ(field(rows, 7, "reason"), "3 jobs left");
}

// Pipes of each table line that no backslash escapes.
void expect_tables(const std::string& text) {
  std::istringstream in(text);
  std::size_t columns = 0;
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with("|")) {
      columns = 0;
      continue;
    }
    std::size_t pipes = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (line[i] == '\\')
        ++i;
      else
        pipes += line[i] == '|';
    }
    if (!columns) columns = pipes;
    EXPECT_EQ(pipes, columns) << line;
    EXPECT_TRUE(line.ends_with("|")) << line;
  }
}

TEST(Markdown, has_an_accuracy_and_a_timing_table) {
  const std::string text = to_markdown(sample_report());
  expect_tables(text);
  EXPECT_NE(text.find("## Accuracy\n"), std::string::npos);
  EXPECT_NE(
      text.find(" | o | 3.40e-03 | 0.78 | 4.4 | o is 0 in fast mode alone: 1 of 129 tokens, sequence 2 head 0 token 0 |\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("\n## Timings\n"), std::string::npos);
  EXPECT_EQ(to_markdown(Report{}), "");
}

TEST(Markdown, says_first_that_a_run_is_unfinished) {
  Report report = sample_report();
  report.jobs_left = 3;
  EXPECT_EQ(to_markdown(report), "**Unfinished:** 3 jobs left\n\n" + to_markdown(sample_report()));
}

TEST(Markdown, keeps_its_columns_whatever_the_text) {
  expect_tables(to_markdown(hostile_report()));
  expect_tables(to_github_summary(hostile_report()));
  EXPECT_EQ(markdown_cell("a|b\\|\n<b>`*&"), "a\\|b\\\\\\|<br>&lt;b&gt;\\`\\*&amp;");
}

}  // namespace
}  // namespace deltagauge::reports
