// The terminal table, the failures in words, the place of an element, and the accuracy table.
#include "reports/table.h"

#include <gtest/gtest.h>

#include <sstream>

#include "core/error.h"
#include "reports/accuracy_table.h"
#include "reports/locate.h"
#include "reports/sample_report.h"

namespace deltagauge::reports {
namespace {

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

TEST(Table, has_one_line_per_case_backend_and_check_under_its_case) {
  Report report = sample_report();
  std::swap(report.results[2], report.results[3]);  // a case's lines stand together whatever the order of results
  const std::string text = table(report, {});
  EXPECT_TRUE(contains(text, std::string(kSampleCase) + "  (qwen3-next)\n  pass   cuda.gdn.chunk_sm80"));
  const auto stages = text.find("stages"), l2norm = text.find("\nl2norm/");
  ASSERT_NE(stages, std::string::npos);
  ASSERT_NE(l2norm, std::string::npos);
  EXPECT_LT(stages, l2norm);
}

TEST(Table, explains_a_failure_in_words) {
  const std::string text = table(sample_report(), {});
  EXPECT_TRUE(contains(text, "FAILED cuda.gdn.recurrent accuracy\n  " + std::string(kSampleCase)));
  EXPECT_TRUE(contains(text, "o: worst row error inf of its budget 0.00031, worst element nan of its share"));
  EXPECT_TRUE(contains(text, "budget: emulator chunk64.io + 0.5 u_bf16 |want|"));
  EXPECT_TRUE(contains(text, "2 values are not finite"));
  EXPECT_TRUE(contains(text, "at [128, 0, 5]: sequence 2, token 0 (chunk 0, position 0 of 64), head 0, value column 5"));
  EXPECT_TRUE(contains(text, "expected 1, got nan"));
  EXPECT_TRUE(contains(text, std::string("again: deltagauge validate --case '") + kSampleCase + "'\n"));
  EXPECT_TRUE(contains(text, "BROKEN reference.l2norm accuracy"));
}

TEST(Table, gives_timings_a_table_of_their_own_with_the_roofline_of_the_run) {
  const std::string text = table(sample_report(), {});
  EXPECT_TRUE(contains(
      text, "  backend              timer      median us    p95 us samples   TB/s TFLOP/s roof % x floor    MHz\n"));
  EXPECT_TRUE(contains(
      text, "  cuda.gdn.chunk_sm80  graph-hot      12.50     12.75       3  0.080     6.8    2.0   50.00   1980\n"));
  EXPECT_TRUE(contains(text, "roofline of this run: copy 4.25 TB/s, bf16 products 790 TFLOP/s\n"));
}

TEST(Table, ends_in_a_summary) {
  const std::string text = table(sample_report(), {});
  EXPECT_TRUE(contains(text, "skipped 1: no taps\n3 judged: 2 passed, 1 failed; 1 skipped, 1 errors\n"));
}

TEST(Table, says_what_is_left_of_an_unfinished_run_and_where_a_shrunk_case_lies) {
  Report report = sample_report();
  report.shard = {1, 2};
  report.jobs_left = 3;
  report.results[1].shrunk = ShrunkCase{"gdn/fwd/len=1/seed=1", "r.shrunk1.safetensors"};
  const std::string text = table(report, {});
  EXPECT_NE(text.find("unfinished: 3 jobs left of shard 1/2\n"), std::string::npos) << text;
  EXPECT_NE(text.find("  shrunk to gdn/fwd/len=1/seed=1\n  tensors: r.shrunk1.safetensors\n"), std::string::npos) << text;
  EXPECT_EQ(table(sample_report(), {}).find("unfinished"), std::string::npos);
}

TEST(Table, keeps_rows_within_the_width_but_never_cuts_a_case_id) {
  Report report = sample_report();
  report.results[2].reason = std::string(200, 'x');
  std::istringstream lines(table(report, {.width = 80}));
  for (std::string line; std::getline(lines, line);) {
    const bool row = line.starts_with("  pass") || line.starts_with("  fail") || line.starts_with("  skip");
    EXPECT_TRUE(!row || line.size() <= 80) << line;
  }
  EXPECT_TRUE(contains(table(report, {.width = 80}), std::string(kSampleCase) + "  (qwen3-next)\n"));
}

TEST(Table, colours_only_when_asked_and_shows_failures_alone_when_asked) {
  EXPECT_FALSE(contains(table(sample_report(), {}), "\x1b["));
  EXPECT_TRUE(contains(table(sample_report(), {.colour = true}), "\x1b[1;31mfail \x1b[0m"));
  const std::string failures = table(sample_report(), {.rows = Rows::failures});
  EXPECT_TRUE(failures.starts_with("FAILED"));
  EXPECT_FALSE(contains(failures, "pass "));
}

TEST(Table, names_the_tensor_with_values_that_are_not_finite_before_one_over_its_budget) {
  Report report;
  Result& r = report.results.emplace_back();
  r.test = kSampleCase, r.backend = "b", r.check = "accuracy", r.outcome = Outcome::fail;
  r.tensors["final_state"].row_ratio = 0.5;
  r.tensors["final_state"].non_finite = 3;
  r.tensors["o"].row_ratio = 7;
  const std::string text = table(report, {});
  EXPECT_TRUE(contains(text, "b        accuracy  final_state")) << text;
  EXPECT_LT(text.find("final_state: worst row error"), text.find("o: worst row error")) << text;
}

TEST(Table, shows_control_characters_of_a_report_as_text) {
  Report report = sample_report();
  report.results[0].name = "a\x1b[2J\r\xc2\x9b";
  report.results[1].reason = "first\n9 judged: 9 passed\x07";
  report.results[1].outcome = Outcome::fail;
  const std::string text = table(report, {});
  EXPECT_EQ(text.find_first_of("\x1b\r\x07"), std::string::npos);
  EXPECT_TRUE(contains(text, R"(a\x1b[2J\x0d\x9b)")) << text;
  EXPECT_TRUE(contains(text, "  first\n    9 judged: 9 passed\\x07\n")) << text;
}

TEST(Locate, says_sequence_token_chunk_and_head) {
  const struct {
    const char* tensor;
    std::vector<std::int64_t> index;
    const char* words;
  } kPlaces[] = {
      {"o", {62, 1, 7}, "[62, 1, 7]: sequence 0, token 62 (chunk 0, position 62 of 64), head 1, value column 7"},
      {"o", {127, 3, 0}, "[127, 3, 0]: sequence 1, token 64 (chunk 1, position 0 of 64), head 3, value column 0"},
      {"o", {129, 0, 0}, "[129, 0, 0]: row 129 past the active end 129, head 0, value column 0"},
      {"final_state", {2, 3, 5, 6}, "[2, 3, 5, 6]: sequence 2, head 3, value column 5, key channel 6"},
      {"Ainv", {2, 0, 9, 8}, "[2, 0, 9, 8]: sequence 1, chunk 1, head 0, row 9, column 8"},
      {"S", {3, 0, 9, 8}, "[3, 0, 9, 8]: sequence 2, chunk 0, head 0, value column 9, key channel 8"},
      {"unknown", {1, 2}, "[1, 2]"},
  };
  for (const auto& place : kPlaces) EXPECT_EQ(locate(kSampleCase, place.tensor, place.index), place.words);
  EXPECT_EQ(locate("not an id", "o", std::vector<std::int64_t>{1}), "[1]");
}

TEST(AccuracyTable, gives_the_worst_of_each_metric_per_kernel_dtype_and_tensor) {
  Report report;
  const auto add = [&](const std::string& io, double rel, double row, double element, int seed) {
    Result& r = report.results.emplace_back();
    r.test = "gdn/fwd/len=64,HK=1,HV=1,K=64,V=64/" + io + "/gate=mild/keys=iid/precise/seed=" + std::to_string(seed);
    r.backend = "cuda.gdn.chunk_sm80", r.check = "accuracy", r.outcome = Outcome::pass;
    r.tensors["o"].rel_l2 = rel, r.tensors["o"].row_ratio = row, r.tensors["o"].element_ratio = element;
  };
  add("bf16", 3e-3, 0.9, 4, 1);
  add("bf16", 4e-3, 0.8, 5, 2);
  add("f16", 5e-4, 0.7, 3, 3);
  add("bf16", 1, 1, 1, 4);
  report.results.back().outcome = Outcome::skip;
  add("bf16", 1, 1, 1, 5);
  report.results.back().check = "stages";
  EXPECT_EQ(accuracy_table(std::span(&report, 1)),
            "| kernel | io | tensor | cases | worst rel-L2 | worst row ratio | worst element ratio | worst regime |\n"
            "|---|---|---|---|---|---|---|---|\n"
            "| cuda.gdn.chunk_sm80 | bf16 | o | 2 | 4.00e-03 | 0.90 | 5.00 | "
            "`gdn/fwd/len=64,HK=1,HV=1,K=64,V=64/bf16/gate=mild/keys=iid/precise/seed=1` |\n"
            "| cuda.gdn.chunk_sm80 | f16 | o | 1 | 5.00e-04 | 0.70 | 3.00 | "
            "`gdn/fwd/len=64,HK=1,HV=1,K=64,V=64/f16/gate=mild/keys=iid/precise/seed=3` |\n");
  EXPECT_THROW(accuracy_table({}), Error);
}

TEST(AccuracyTable, does_not_hide_values_that_are_not_finite) {
  Report report;
  for (const char* seed : {"1", "2"}) {
    Result& r = report.results.emplace_back();
    r.test = std::string("gdn/fwd/len=64,HK=1,HV=1,K=64,V=64/bf16/gate=mild/keys=iid/precise/seed=") + seed;
    r.backend = "b", r.check = "accuracy", r.outcome = Outcome::fail;
    r.tensors["o"].row_ratio = 3;
  }
  report.results[1].tensors["o"].row_ratio = 0;
  report.results[1].tensors["o"].non_finite = 5;
  const std::string text = accuracy_table(std::span(&report, 1));
  EXPECT_TRUE(contains(text, "| b | bf16 | o | 2 | nan | nan | nan | `gdn/")) << text;
  EXPECT_TRUE(contains(text, "seed=2` |")) << text;
}

}  // namespace
}  // namespace deltagauge::reports
