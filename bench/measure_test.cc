// The sampling loop and the figures of a row, from timers that give known times.
#include "bench/measure.h"

#include <gtest/gtest.h>

#include <vector>

namespace deltagauge::bench {
namespace {

// Gives the listed samples again and again.
class Scripted : public Timer {
 public:
  explicit Scripted(std::vector<double> samples, std::int64_t calls = 1) : samples_(std::move(samples)), calls_(calls) {}
  double sample() override { return samples_[next_++ % samples_.size()]; }
  std::int64_t calls() const override { return calls_; }

 private:
  std::vector<double> samples_;
  std::int64_t calls_;
  std::size_t next_ = 0;
};

reports::compare::StopOptions quick() {
  reports::compare::StopOptions options;
  options.min_time = 0x1p-30;
  return options;
}

TEST(Measure, settles_on_a_steady_timer_and_says_what_was_seen) {
  Scripted timer({0.25}, 4);
  const reports::Roofline roofline{2.0, 500.0};
  const auto watch = [] {
    reports::Conditions c;
    c.sm_mhz = 1980;
    c.throttle = {"sw_power_cap"};
    return c;
  };
  const reports::Timing t = measure(timer, 1e12, 1e12, roofline, quick(), watch);
  EXPECT_TRUE(t.settled);
  EXPECT_EQ(t.samples.size(), 10U);
  EXPECT_EQ(t.calls, 4);
  EXPECT_EQ(t.median, 0.25);
  EXPECT_EQ(t.min, 0.25);
  EXPECT_EQ(t.p95, 0.25);
  EXPECT_EQ(t.tb_s(), 4.0);
  EXPECT_EQ(t.tflop_s(), 4.0);
  EXPECT_EQ(t.floor, 0.5);  // bytes bound: 10^12 at 2 x 10^12 a second
  EXPECT_EQ(t.x_of_floor(), 0.5);
  EXPECT_EQ(t.roofline_percent(), 200.0);
  EXPECT_EQ(t.conditions.sm_mhz, 1980);
  EXPECT_FALSE(t.conditions.power_w.has_value());
  EXPECT_EQ(t.conditions.throttle, std::vector<std::string>{"sw_power_cap"});
}

TEST(Measure, gives_up_on_a_noisy_timer_at_the_time_limit_and_says_so) {
  Scripted timer({0.25, 0.5, 1.0});
  auto options = quick();
  options.timeout = 0;
  const reports::Timing t = measure(timer, 1, 1, std::nullopt, options, [] { return reports::Conditions{}; });
  EXPECT_FALSE(t.settled);
  EXPECT_EQ(t.floor, 0);
  EXPECT_EQ(t.x_of_floor(), 0);
}

TEST(Measure, floor_is_the_slower_of_bytes_and_products) {
  const reports::Roofline roofline{4.0, 800.0};
  EXPECT_EQ(floor_of(800e12, 1, roofline), 1.0);
  EXPECT_EQ(floor_of(1, 8e12, roofline), 2.0);
  EXPECT_EQ(floor_of(1, 1, std::nullopt), 0.0);
}

}  // namespace
}  // namespace deltagauge::bench
