// How often compare() errs, by simulation of whole sweeps. A sample's relative noise has a deviation of about 1 %: a normal
// part, a dependent part (first-order autoregressive), now and then a delay from a lognormal law; a drift through each
// session; in some sessions a stretch with lower clocks. Each session of each row has its own shift of 0.3 %.
#include <gtest/gtest.h>

#include <boost/math/distributions/binomial.hpp>
#include <cmath>
#include <numbers>
#include <random>

#include "reports/compare/compare.h"

namespace deltagauge::reports::compare {
namespace {

constexpr int kRows = 200;
constexpr double kSessionShift = 0.003;
constexpr double kDetectable = -1;  // as slow as the comparison of equal sides says

class Noise {
 public:
  explicit Noise(std::uint64_t seed) : bits_(seed) {}
  double uniform() { return (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53; }
  double normal() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

 private:
  std::mt19937_64 bits_;  // its sequence is fixed by the standard, that of <random>'s distributions is not
};

struct Plan {
  int sessions = 4, samples = 30;
};

// One session of one row.
std::vector<double> session(Noise& noise, double time, int samples) {
  const double centre = time * (1 + kSessionShift * noise.normal());
  const double drift = 0.002 * noise.normal();
  const bool throttled = noise.uniform() < 0.02;
  const int slow_from = static_cast<int>(noise.uniform() * samples), slow_to = slow_from + samples / 4;
  double dependent = 0;
  std::vector<double> out;
  for (int i = 0; i < samples; ++i) {
    dependent = 0.5 * dependent + 0.002 * noise.normal();
    double relative = 0.008 * noise.normal() + dependent + drift * i / samples;
    if (noise.uniform() < 0.05) relative += 0.015 * std::exp(0.8 * noise.normal());
    if (throttled && i >= slow_from && i < slow_to) relative += 0.04;
    out.push_back(centre * (1 + relative));
  }
  return out;
}

std::vector<Report> side(Noise& noise, const Plan& plan) {
  std::vector<Report> out(static_cast<std::size_t>(plan.sessions));
  for (Report& report : out)
    for (int row = 0; row < kRows; ++row) {
      Result result;
      result.test = std::to_string(row);
      result.outcome = Outcome::pass;
      result.timing.emplace().samples = session(noise, 1e-5 * (1 + row), plan.samples);
      report.results.push_back(std::move(result));
    }
  return out;
}

void slow_down(std::vector<Report>& reports, double by) {
  for (Report& report : reports)
    for (double& x : report.results[0].timing->samples) x *= 1 + by;
}

struct Counts {
  int sweeps = 0, false_alarms = 0, found = 0, false_beside_found = 0;
};

// Sweeps of equal sides, and the same again with one row slower.
Counts simulate(const Plan& plan, int sweeps, double slowdown, std::uint64_t seed) {
  Noise noise(seed);
  Counts counts;
  const auto flagged = [](const Pair& pair) { return pair.verdict != Verdict::same; };
  for (; counts.sweeps < sweeps; ++counts.sweeps) {
    const std::vector<Report> base = side(noise, plan);
    std::vector<Report> fresh = side(noise, plan);
    const Comparison equal = compare(base, fresh);
    counts.false_alarms += std::any_of(equal.pairs.begin(), equal.pairs.end(), flagged);
    if (slowdown == 0) continue;
    slow_down(fresh, slowdown == kDetectable ? equal.pairs[0].time->detectable : slowdown);
    const Comparison slower = compare(base, fresh);
    counts.found += slower.pairs[0].verdict == Verdict::regression;
    counts.false_beside_found += std::any_of(slower.pairs.begin() + 1, slower.pairs.end(), flagged);
  }
  return counts;
}

// Clopper and Pearson's bounds of a share, each with 95 % confidence.
using Binomial = boost::math::binomial_distribution<>;
double at_most(int count, int of) { return Binomial::find_upper_bound_on_p(of, count, 0.05); }
double at_least(int count, int of) { return Binomial::find_lower_bound_on_p(of, count, 0.05); }

// No alarm in 310 sweeps bounds their share by 0.97 %; 302 found of 310 bound the power by 95.4 %.
TEST(Calibration, four_sessions_a_side_find_two_percent_and_flag_next_to_nothing_else) {
  const Counts counts = simulate({.sessions = 4, .samples = 30}, 310, 0.02, 1);
  RecordProperty("false_alarms", counts.false_alarms);
  RecordProperty("found", counts.found);
  EXPECT_LT(at_most(counts.false_alarms, counts.sweeps), 0.01);
  EXPECT_LT(at_most(counts.false_beside_found, counts.sweeps), 0.01);
  EXPECT_GT(at_least(counts.found, counts.sweeps), 0.95);
}

// Samples of one session, however many, say nothing of the next session: 100 must not pass for certainty. One alarm in 480
// sweeps bounds their share by 0.99 %.
TEST(Calibration, one_session_a_side_flags_next_to_nothing_in_equal_sweeps) {
  const Counts counts = simulate({.sessions = 1, .samples = 100}, 480, 0, 2);
  RecordProperty("false_alarms", counts.false_alarms);
  EXPECT_LT(at_most(counts.false_alarms, counts.sweeps), 0.01);
}

TEST(Calibration, a_row_as_slow_as_the_comparison_claims_to_find_is_found_19_times_in_20) {
  const Counts counts = simulate({.sessions = 1, .samples = 30}, 300, kDetectable, 3);
  RecordProperty("found", counts.found);
  EXPECT_GE(20 * counts.found, 19 * counts.sweeps);
}

}  // namespace
}  // namespace deltagauge::reports::compare
