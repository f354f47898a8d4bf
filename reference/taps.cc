#include "reference/taps.h"

#include <algorithm>
#include <cmath>

namespace deltagauge::reference {
namespace {

template <class Real>
void record_values(Range& range, std::span<const Real> before, std::span<const Real> after) {
  const double smallest = smallest_normal(range.format);
  for (std::size_t i = 0; i < before.size(); ++i) {
    const double x = std::fabs(static_cast<double>(before[i])), y = std::fabs(static_cast<double>(after[i]));
    if (!std::isfinite(x)) {
      ++range.non_finite;
      continue;
    }
    if (x == 0) {
      ++range.zeros;
      continue;
    }
    range.min_abs = std::min(range.min_abs, x);
    range.max_abs = std::max(range.max_abs, x);
    if (!std::isfinite(y)) ++range.overflows;
    if (y == 0) ++range.flushed;
    if (y != 0 && y < smallest) ++range.subnormals;
  }
  range.count += static_cast<std::int64_t>(before.size());
}

template <class Real>
void record_into(Ranges& ranges, std::string_view name, DType format, std::span<const Real> before,
                 std::span<const Real> after) {
  Range& range = ranges[std::string(name)];
  range.format = format;
  record_values(range, before, after);
}

}  // namespace

int Range::min_exponent() const { return max_abs > 0 ? std::ilogb(min_abs) : 0; }
int Range::max_exponent() const { return max_abs > 0 ? std::ilogb(max_abs) : 0; }
double Range::headroom_bits() const { return std::log2(largest_finite(format)) - std::log2(max_abs); }

void Range::add(const Range& other) {
  format = other.format;
  count += other.count;
  zeros += other.zeros;
  non_finite += other.non_finite;
  overflows += other.overflows;
  flushed += other.flushed;
  subnormals += other.subnormals;
  min_abs = std::min(min_abs, other.min_abs);
  max_abs = std::max(max_abs, other.max_abs);
}

void record(Ranges& ranges, std::string_view name, DType format, std::span<const float> before,
            std::span<const float> after) {
  record_into(ranges, name, format, before, after);
}
void record(Ranges& ranges, std::string_view name, DType format, std::span<const double> before,
            std::span<const double> after) {
  record_into(ranges, name, format, before, after);
}

void merge(Ranges& into, const Ranges& from) {
  for (const auto& [name, range] : from) into[name].add(range);
}

}  // namespace deltagauge::reference
