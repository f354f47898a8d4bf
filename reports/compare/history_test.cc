// The history file, and change points on series whose changes are known.
#include "reports/compare/history.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <random>

#include "core/error.h"
#include "reports/file.h"
#include "reports/sample_report.h"

namespace deltagauge::reports::compare {
namespace {

class HistoryFile : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    path = ::testing::TempDir() + "deltagauge_history_" + test->name() + ".jsonl";
    std::filesystem::remove(path);
  }
  void TearDown() override { std::filesystem::remove(path); }

  std::string refusal() const {
    try {
      load(path);
    } catch (const Error& e) {
      return std::string(e.what()).substr(path.size());
    }
    return "";
  }

  std::string path;
};

TEST_F(HistoryFile, keeps_a_line_of_each_bench_row_that_passed) {
  append(path, sample_report(), "2026-01-02T03:04:05Z");
  const std::vector<HistoryLine> lines = load(path);
  ASSERT_EQ(lines.size(), 1u);
  const HistoryLine& h = lines[0];
  EXPECT_EQ(h.commit, std::string(40, 'a') + "+");
  EXPECT_EQ(h.date, "2026-01-02T03:04:05Z");
  EXPECT_EQ(h.device, "NVIDIA H200");
  EXPECT_EQ(h.sm, 90);
  EXPECT_EQ(h.driver, 13000);
  EXPECT_EQ(h.test, kSampleCase);
  EXPECT_EQ(h.backend, "cuda.gdn.chunk_sm80");
  EXPECT_EQ(h.check, "graph-hot");
  EXPECT_EQ(h.median, 12.5e-6);
  EXPECT_DOUBLE_EQ(h.q1, 12.375e-6);
  EXPECT_DOUBLE_EQ(h.q3, 12.625e-6);
  EXPECT_EQ(h.samples, 3);
  EXPECT_EQ(h.sm_mhz, 1980);
  EXPECT_FALSE(h.memory_mhz);
}

TEST_F(HistoryFile, only_grows_and_refuses_the_same_run_twice) {
  append(path, sample_report(), "2026-01-02");
  const std::string before = read_file(path);
  EXPECT_THROW(append(path, sample_report(), "2026-01-02"), Error);
  EXPECT_EQ(read_file(path), before);
  append(path, sample_report(), "2026-01-03");
  EXPECT_EQ(read_file(path).substr(0, before.size()), before);
  EXPECT_EQ(load(path).size(), 2u);
}

TEST_F(HistoryFile, names_the_line_of_an_interrupted_write) {
  append(path, sample_report(), "2026-01-02");
  std::ofstream(path, std::ios::app) << "{\"commit\": \"b";
  EXPECT_EQ(refusal(), ":2: expected a whole line, got 13 bytes without an end of line: an interrupted write; remove it");
  EXPECT_THROW(append(path, sample_report(), "2026-01-03"), Error);  // and adds nothing after it
}

TEST_F(HistoryFile, names_a_line_that_is_something_else) {
  append(path, sample_report(), "2026-01-02");
  std::ofstream(path, std::ios::app) << "{\"commit\": 3}\n";
  EXPECT_EQ(refusal().substr(0, 3), ":2:");
  std::ofstream(path, std::ios::trunc) << "\n";
  EXPECT_EQ(refusal().substr(0, 3), ":1:");
}

TEST_F(HistoryFile, refuses_a_report_with_nothing_to_remember) {
  Report report = sample_report();
  report.device.reset();
  EXPECT_THROW(append(path, report, "2026-01-02"), Error);
  report = sample_report();
  report.results.resize(3);
  EXPECT_THROW(append(path, report, "2026-01-02"), Error);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Series, make_one_point_of_the_runs_of_a_commit) {
  HistoryLine a;
  a.commit = "1", a.device = "x", a.test = "t", a.median = 1;
  HistoryLine b = a, again = a, elsewhere = a;
  b.commit = "2", b.median = 7;
  again.median = 3;
  elsewhere.device = "y";
  const std::vector<HistoryLine> lines = {a, b, elsewhere, again};
  const std::vector<Series> all = series(lines);
  ASSERT_EQ(all.size(), 2u);
  ASSERT_EQ(all[0].points.size(), 2u);
  EXPECT_EQ(all[0].points[0].time, 2);  // of 1 and 3
  EXPECT_EQ(all[0].points[0].sessions, 2);
  EXPECT_EQ(all[0].points[1].time, 7);
  EXPECT_EQ(all[1].device, "y");
}

// Levels with noise of 0.5 %.
std::vector<double> noisy(const std::vector<std::pair<int, double>>& levels, std::uint64_t seed) {
  std::mt19937_64 bits(seed);
  const auto uniform = [&] { return (static_cast<double>(bits() >> 11) + 0.5) * 0x1p-53; };
  std::vector<double> out;
  for (const auto& [count, level] : levels)
    for (int i = 0; i < count; ++i)
      out.push_back(level * (1 + 0.005 * std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform())));
  return out;
}

TEST(ChangePoints, are_found_where_the_level_steps) {
  const std::vector<ChangePoint> found = change_points(noisy({{20, 1}, {15, 1.05}, {25, 0.9}}, 1));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at, 20u);
  EXPECT_EQ(found[1].at, 35u);
  EXPECT_GT(found[0].ratio, 1.04);
  EXPECT_LT(found[1].ratio, 0.87);
}

TEST(ChangePoints, find_a_passing_slowdown) {
  const std::vector<ChangePoint> found = change_points(noisy({{30, 1}, {8, 1.04}, {30, 1}}, 2));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].at, 30u);
  EXPECT_EQ(found[1].at, 38u);
}

TEST(ChangePoints, are_exact_without_noise) {
  const std::vector<double> times = {1, 1, 1, 1, 2, 2, 2, 2};
  const std::vector<ChangePoint> found = change_points(times);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].at, 4u);
  EXPECT_EQ(found[0].ratio, 2);
  EXPECT_EQ(found[0].p, 0);
  EXPECT_TRUE(change_points(std::vector<double>(50, 3.0)).empty());
}

TEST(ChangePoints, do_not_appear_in_flat_noise) {
  for (std::uint64_t seed = 1; seed <= 300; ++seed) EXPECT_TRUE(change_points(noisy({{100, 1}}, seed)).empty()) << seed;
}

TEST(ChangePoints, ignore_one_odd_point_and_small_steps) {
  std::vector<double> times = noisy({{60, 1}}, 3);
  times[30] = 1.5;
  EXPECT_TRUE(change_points(times).empty());
  EXPECT_TRUE(change_points(noisy({{200, 1}, {200, 1.005}}, 4)).empty());  // found, and under 1 %
}

TEST(ChangePoints, need_enough_points_and_positive_times) {
  EXPECT_TRUE(change_points({}).empty());
  EXPECT_TRUE(change_points(std::vector<double>{1, 1, 1, 2, 2, 2}).empty());
  EXPECT_THROW(change_points(std::vector<double>{1, 0}), Error);
  EXPECT_THROW(change_points(std::vector<double>{1, NAN}), Error);
}

}  // namespace
}  // namespace deltagauge::reports::compare
