// Change points of a series; history.h says how.
#include <algorithm>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>

#include "core/error.h"
#include "reports/compare/history.h"

namespace deltagauge::reports::compare {
namespace {

struct Split {
  std::size_t at = 0;
  double shift = 0, t = 0, dof = 0;

  double p() const {
    return std::isinf(t) ? 0 : 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(dof), t));
  }
};

// Student's two-sample t with pooled variance between logs[low, at) and logs[at, high).
Split test(std::span<const double> logs, std::size_t low, std::size_t at, std::size_t high) {
  const auto mean = [&](std::size_t from, std::size_t to) {
    double sum = 0;
    for (std::size_t i = from; i < to; ++i) sum += logs[i];
    return sum / static_cast<double>(to - from);
  };
  const double before = mean(low, at), after = mean(at, high);
  double squares = 0;
  for (std::size_t i = low; i < high; ++i) {
    const double d = logs[i] - (i < at ? before : after);
    squares += d * d;
  }
  const auto n = static_cast<double>(at - low), m = static_cast<double>(high - at);
  const double se = std::sqrt(squares / (n + m - 2) * (1 / n + 1 / m)), shift = after - before;
  return {at, shift, shift == 0 ? 0 : std::abs(shift) / se, n + m - 2};
}

// Where the two parts of a segment differ most.
std::size_t best(std::span<const double> logs, std::size_t low, std::size_t high, std::size_t least) {
  Split out;
  for (std::size_t at = low + least; at + least <= high; ++at)
    if (const Split split = test(logs, low, at, high); out.at == 0 || split.t > out.t) out = split;
  return out.at;
}

// Splits as far as segments are long enough.
void divide(std::span<const double> logs, std::size_t low, std::size_t high, std::size_t least,
            std::vector<std::size_t>& found) {
  if (high - low < 2 * least) return;
  const std::size_t at = best(logs, low, high, least);
  divide(logs, low, at, least, found);
  found.push_back(at);
  divide(logs, at, high, least, found);
}

// Moves each split to the best place between its neighbours; whether any moved. Every move brings the points closer to the
// means of their segments, so that moving ends.
bool move(std::span<const double> logs, std::size_t least, std::vector<std::size_t>& found) {
  bool moved = false;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::size_t low = i ? found[i - 1] : 0, high = i + 1 < found.size() ? found[i + 1] : logs.size();
    const std::size_t at = best(logs, low, high, least);
    if (at == found[i] || !(test(logs, low, at, high).t > test(logs, low, found[i], high).t)) continue;
    found[i] = at;
    moved = true;
  }
  return moved;
}

}  // namespace

std::vector<ChangePoint> change_points(std::span<const double> times, const ChangeOptions& options) {
  if (options.least_points < 2) fail("change_points: expected least_points of 2 or more, got ", options.least_points);
  std::vector<double> logs;
  for (const double time : times) {
    if (!(std::isfinite(time) && time > 0)) fail("change_points: expected positive times, got ", time);
    logs.push_back(std::log(time));
  }
  std::vector<std::size_t> found;
  divide(logs, 0, logs.size(), options.least_points, found);
  const auto places = static_cast<double>(logs.size());
  for (;;) {
    std::vector<ChangePoint> out;
    std::size_t weakest = 0;
    double badness = -1;  // of the weakest: its p, above 1 where the change is small
    for (std::size_t i = 0; i < found.size(); ++i) {
      const std::size_t low = i ? found[i - 1] : 0, high = i + 1 < found.size() ? found[i + 1] : logs.size();
      const Split split = test(logs, low, found[i], high);
      const double p = split.p();
      out.push_back({found[i], std::exp(split.shift), std::min(1.0, p * places)});
      const double bad = std::abs(split.shift) < std::log1p(options.floor) ? 1 + p : p;
      if (bad > badness) badness = bad, weakest = i;
    }
    if (badness * places >= options.p_limit)
      found.erase(found.begin() + static_cast<std::ptrdiff_t>(weakest));
    else if (!move(logs, options.least_points, found))
      return out;
  }
}

}  // namespace deltagauge::reports::compare
