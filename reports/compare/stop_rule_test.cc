// When the stop rule ends a measurement.
#include "reports/compare/stop_rule.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"

namespace deltagauge::reports::compare {
namespace {

// Samples by index until the rule ends, each taking its own time on the wall; how many it took and why it ended.
template <class Sample>
std::pair<std::int64_t, Stop> run(const StopOptions& options, Sample sample) {
  StopRule rule(options);
  double elapsed = 0;
  for (std::int64_t i = 0;; ++i) {
    const double x = sample(i);
    elapsed += x * static_cast<double>(options.calls);
    if (const Stop stop = rule.add(x, elapsed); stop != Stop::more) return {rule.samples(), stop};
  }
}

TEST(StopRule, stdrel_settles_after_the_least_time_when_samples_agree) {
  const auto constant = [](std::int64_t) { return 0x1p-10; };
  EXPECT_EQ(run({}, constant), std::pair(std::int64_t{513}, Stop::settled));            // the first past 0.5 s
  EXPECT_EQ(run({.calls = 64}, constant), std::pair(std::int64_t{10}, Stop::settled));  // the least samples come later
}

TEST(StopRule, stdrel_waits_for_noise_and_accepts_steady_noise) {
  // Alternating +-2 %: the deviation falls to 2 % and stays, 65 values after the fifth sample, asked every 16.
  const auto noisy = [](std::int64_t i) { return i % 2 ? 1.02 : 0.98; };
  const auto [samples, stop] = run({.timeout = 1e6}, noisy);
  EXPECT_EQ(stop, Stop::settled);
  EXPECT_EQ(samples % 16, 0);
  EXPECT_GE(samples, 64 + 5);
}

TEST(StopRule, ends_at_the_time_limit) {
  const auto doubling = [](std::int64_t i) { return std::ldexp(1e-3, static_cast<int>(i % 12)); };
  EXPECT_EQ(run({.timeout = 1}, doubling).second, Stop::timeout);
  EXPECT_EQ(run({}, [](std::int64_t) { return 4.0; }), std::pair(std::int64_t{4}, Stop::timeout));  // before 10 samples
}

TEST(StopRule, entropy_settles_on_repeated_values_at_once) {
  const StopOptions entropy{.criterion = Criterion::entropy};
  EXPECT_EQ(run(entropy, [](std::int64_t) { return 1e-3; }), std::pair(std::int64_t{10}, Stop::settled));
}

// All values differ: H_n = log2 n, whose slope over the last 299 falls to tan 0.048 degrees near n = 299 / 2 + 1 / (ln 2
// slope).
TEST(StopRule, entropy_waits_while_new_values_come) {
  const StopOptions entropy{.criterion = Criterion::entropy, .timeout = 1e6};
  const auto [samples, stop] = run(entropy, [](std::int64_t i) { return 1e-3 + 0x1p-30 * static_cast<double>(i); });
  EXPECT_EQ(stop, Stop::settled);
  const double slope = std::tan(0.048 * std::acos(-1.0) / 180), expected = 299.0 / 2 + 1 / (std::log(2.0) * slope);
  EXPECT_GT(static_cast<double>(samples), 0.95 * expected);
  EXPECT_LT(static_cast<double>(samples), 1.05 * expected);
}

TEST(StopRule, refuses_times_that_are_none) {
  for (const double bad : {0.0, -1.0, static_cast<double>(NAN), static_cast<double>(INFINITY)})
    EXPECT_THROW(StopRule().add(bad, 0), Error);
}

}  // namespace
}  // namespace deltagauge::reports::compare
