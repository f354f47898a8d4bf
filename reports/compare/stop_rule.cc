#include "reports/compare/stop_rule.h"

#include <cmath>
#include <numbers>

#include "core/error.h"

namespace deltagauge::reports::compare {
namespace {

constexpr std::size_t kNoiseWindow = 512, kEntropyWindow = 299;
constexpr std::size_t kNoiseValues = 64;  // before the noise may count as steady
constexpr std::int64_t kNoiseEvery = 16, kEntropyEvery = 2;
constexpr double kSteadyNoise = 0.05;
constexpr std::int64_t kDeviationSamples = 5;  // fewer give no deviation worth the name

void push(std::deque<double>& window, std::size_t size, double value) {
  if (window.size() == size) window.pop_front();
  window.push_back(value);
}

}  // namespace

Stop StopRule::add(double sample, double elapsed) {
  if (!(std::isfinite(sample) && sample > 0)) fail("stop rule: expected a positive time, got ", sample);
  ++count_;
  time_ += sample * static_cast<double>(options_.calls);
  bool settled = false;
  if (options_.criterion == Criterion::stdrel) {
    // Welford, "Note on a method for calculating corrected sums of squares and products" (1962).
    const double step = sample - mean_;
    mean_ += step / static_cast<double>(count_);
    squares_ += step * (sample - mean_);
    if (count_ >= kDeviationSamples)
      push(noise_, kNoiseWindow, std::sqrt(squares_ / static_cast<double>(count_ - 1)) / mean_);
    settled = quiet();
  } else {
    // H = log2 n - (1/n) sum c log2 c.
    const auto c = static_cast<double>(++seen_[sample]);
    weighted_ += c * std::log2(c) - (c > 1 ? (c - 1) * std::log2(c - 1) : 0);
    const auto n = static_cast<double>(count_);
    push(entropy_, kEntropyWindow, seen_.size() > 1 ? std::log2(n) - weighted_ / n : 0);
    settled = flat();
  }
  if (settled && count_ >= options_.min_samples) return Stop::settled;
  return elapsed >= options_.timeout ? Stop::timeout : Stop::more;
}

bool StopRule::quiet() {
  if (time_ <= options_.min_time || noise_.empty()) return false;
  const double now = noise_.back();
  if (now < options_.max_noise) return true;
  if (noise_.size() <= kNoiseValues || count_ % kNoiseEvery) return false;
  double sum = 0;
  for (const double x : noise_) sum += (x - now) * (x - now);
  return std::sqrt(sum / static_cast<double>(noise_.size() - 1)) < kSteadyNoise * now;
}

// The least-squares line through (i, H_i).
bool StopRule::flat() const {
  if (entropy_.size() < 2 || count_ % kEntropyEvery) return false;
  const auto n = static_cast<double>(entropy_.size());
  const double middle = (n - 1) / 2;
  double mean = 0, xy = 0, yy = 0;
  for (const double y : entropy_) mean += y / n;
  for (std::size_t i = 0; i < entropy_.size(); ++i) {
    xy += (static_cast<double>(i) - middle) * (entropy_[i] - mean);
    yy += (entropy_[i] - mean) * (entropy_[i] - mean);
  }
  const double xx = n * (n * n - 1) / 12;
  if (std::atan(xy / xx) * 180 / std::numbers::pi > options_.max_angle) return false;
  return yy == 0 || xy * xy / (xx * yy) >= options_.min_r2;  // all equal: the line explains everything
}

}  // namespace deltagauge::reports::compare
