#include "bench/measure.h"

#include <algorithm>
#include <chrono>
#include <numeric>

#include "reports/compare/statistics.h"
#include "validate/mark.h"

namespace deltagauge::bench {
namespace {

using reports::Conditions;
using reports::compare::Stop;

constexpr double kWarmUp = 0.1;       // of the least measuring time
constexpr double kWatchEvery = 0.05;  // seconds between questions to the driver, which cost about a millisecond

class Clock {
 public:
  double seconds() const { return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count(); }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// Medians of what was seen, and every reason to throttle.
Conditions together(const std::vector<Conditions>& seen) {
  Conditions out;
  const auto median_of = [&](std::optional<double> Conditions::*field) -> std::optional<double> {
    std::vector<double> values;
    for (const Conditions& c : seen)
      if (c.*field) values.push_back(*(c.*field));
    if (values.empty()) return std::nullopt;
    return reports::compare::median(std::move(values));
  };
  out.sm_mhz = median_of(&Conditions::sm_mhz);
  out.memory_mhz = median_of(&Conditions::memory_mhz);
  out.temperature_c = median_of(&Conditions::temperature_c);
  out.power_w = median_of(&Conditions::power_w);
  for (const Conditions& c : seen)
    for (const std::string& reason : c.throttle)
      if (std::find(out.throttle.begin(), out.throttle.end(), reason) == out.throttle.end()) out.throttle.push_back(reason);
  return out;
}

}  // namespace

double floor_of(double flops, double bytes, const std::optional<reports::Roofline>& roofline) {
  if (!roofline) return 0;
  return 1e-12 * std::max(flops / roofline->tensor_tflop_s, bytes / roofline->copy_tb_s);
}

reports::Timing measure(Timer& timer, double flops, double bytes, const std::optional<reports::Roofline>& roofline,
                        reports::compare::StopOptions options, const std::function<Conditions()>& watch) {
  reports::Timing out;
  out.calls = options.calls = timer.calls();
  {
    const validate::Mark mark("warm up");
    for (const Clock warm; warm.seconds() < kWarmUp * options.min_time;) timer.sample();
  }

  reports::compare::StopRule rule(options);
  std::vector<Conditions> seen;
  const validate::Mark mark("samples");
  const Clock clock;
  for (Stop stop = Stop::more; stop == Stop::more;) {
    out.samples.push_back(timer.sample());
    stop = rule.add(out.samples.back(), clock.seconds());
    out.settled = stop == Stop::settled;
    if (clock.seconds() >= kWatchEvery * static_cast<double>(seen.size())) seen.push_back(watch());
  }
  out.conditions = together(seen);
  out.min = *std::min_element(out.samples.begin(), out.samples.end());
  out.median = reports::compare::median(out.samples);
  out.mean = std::accumulate(out.samples.begin(), out.samples.end(), 0.0) / static_cast<double>(out.samples.size());
  out.p95 = reports::compare::quantile(out.samples, 0.95);
  out.flops = flops;
  out.bytes = bytes;
  out.floor = floor_of(flops, bytes, roofline);
  return out;
}

}  // namespace deltagauge::bench
