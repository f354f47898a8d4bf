#include "reports/compare/statistics.h"

#include <algorithm>
#include <boost/math/distributions/normal.hpp>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/error.h"

namespace deltagauge::reports::compare {
namespace {

constexpr std::int64_t kExact = 50;  // binom(50, 25) and 2^50 are exact in f64
constexpr double kInfinity = std::numeric_limits<double>::infinity();

void require_finite(std::span<const double> values, const char* what) {
  if (values.empty()) fail(what, ": expected at least one value, got none");
  for (std::size_t i = 0; i < values.size(); ++i)
    if (!std::isfinite(values[i])) fail(what, ": expected finite values, got ", values[i], " at index ", i);
}

std::vector<double> sorted(std::span<const double> values) {
  std::vector<double> out(values.begin(), values.end());
  std::sort(out.begin(), out.end());
  return out;
}

// Ranks from 1 of sorted values, ties averaged; ties: the sum of t^3 - t over groups of t equal values.
struct Ranks {
  std::vector<double> rank;
  double ties = 0;
};
Ranks ranks_of(const std::vector<double>& values) {
  Ranks out;
  for (std::size_t i = 0; i < values.size();) {
    std::size_t end = i;
    while (end < values.size() && values[end] == values[i]) ++end;
    const auto t = static_cast<double>(end - i);
    out.rank.insert(out.rank.end(), end - i, static_cast<double>(i + 1 + end) / 2);
    out.ties += t * t * t - t;
    i = end;
  }
  return out;
}

// How many of the binom(n + m, n) orders give each U: the coefficients of the product of (1 - x^(m+i)) / (1 - x^i), i = 1..n
// (Mann and Whitney's generating function).
std::vector<double> orders_by_u(std::int64_t n, std::int64_t m) {
  const std::int64_t top = n * m;
  std::vector<double> c(static_cast<std::size_t>(top + 1));
  c[0] = 1;
  for (std::int64_t i = 1; i <= n; ++i) {
    for (std::int64_t u = top; u >= m + i; --u) c[static_cast<std::size_t>(u)] -= c[static_cast<std::size_t>(u - m - i)];
    for (std::int64_t u = i; u <= top; ++u) c[static_cast<std::size_t>(u)] += c[static_cast<std::size_t>(u - i)];
  }
  return c;
}

// How many of the 2^n signs give each sum of positive ranks: the coefficients of the product of (1 + x^i), i = 1..n.
std::vector<double> signs_by_sum(std::int64_t n) {
  std::vector<double> c(static_cast<std::size_t>(n * (n + 1) / 2 + 1));
  c[0] = 1;
  for (std::size_t i = 1; i <= static_cast<std::size_t>(n); ++i)
    for (std::size_t s = c.size() - 1; s >= i; --s) c[s] += c[s - i];
  return c;
}

// Two-sided p of a statistic whose null distribution is symmetric.
double exact_p(const std::vector<double>& counts, double statistic) {
  const auto top = static_cast<double>(counts.size() - 1);
  const auto tail = static_cast<std::size_t>(std::min(statistic, top - statistic));
  const double total = std::accumulate(counts.begin(), counts.end(), 0.0);
  return std::min(1.0,
                  2 * std::accumulate(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(tail) + 1, 0.0) / total);
}

double normal_p(double statistic, double mean, double variance) {
  if (!(variance > 0)) return 1;  // all values equal
  return two_sided_p(std::max(0.0, std::abs(statistic - mean) - 0.5) / std::sqrt(variance));
}

// The order statistic (from 1) of the pairwise values that ends an interval at the low end; 0 when there is none.
std::int64_t exact_end(const std::vector<double>& counts, double confidence) {
  const double room = (1 - confidence) / 2 * std::accumulate(counts.begin(), counts.end(), 0.0);
  double sum = 0;
  for (std::size_t end = 0; end < counts.size(); ++end)
    if ((sum += counts[end]) > room) return static_cast<std::int64_t>(end);
  return 0;
}

std::int64_t normal_end(double mean, double variance, double confidence) {
  return std::max<std::int64_t>(0, static_cast<std::int64_t>(std::floor(mean - z_of(1 - confidence) * std::sqrt(variance))));
}

// centre and ends from the k-th smallest (from 1) of count pairwise values.
template <class Kth>
Interval interval(std::int64_t count, std::int64_t end, Kth kth) {
  Interval out{0, -kInfinity, kInfinity};
  out.centre = count % 2 ? kth(count / 2 + 1) : (kth(count / 2) + kth(count / 2 + 1)) / 2;
  if (end > 0) out.low = kth(end), out.high = kth(count + 1 - end);
  return out;
}

// The k-th smallest (from 1) b - a of two sorted lists. Rounding keeps order, so the differences up to any t are counted in
// one walk, which also names the neighbours of t: low and high are always differences. When few are left they are sorted.
double kth_difference(const std::vector<double>& a, const std::vector<double>& b, std::int64_t k) {
  const std::int64_t few = std::ssize(a) + std::ssize(b);
  double low = b.front() - a.back(), high = b.back() - a.front();
  std::int64_t before = 0, upto = std::ssize(a) * std::ssize(b);  // differences below low, and up to high
  while (low < high && upto - before > few) {
    double t = low + (high - low) / 2;
    if (!(t < high)) t = low;
    std::int64_t count = 0;
    double below = -kInfinity, above = kInfinity;
    std::size_t i = 0;
    for (const double y : b) {
      while (i < a.size() && y - a[i] > t) ++i;
      if (i > 0) above = std::min(above, y - a[i - 1]);
      if (i < a.size()) below = std::max(below, y - a[i]);
      count += static_cast<std::int64_t>(a.size() - i);
    }
    if (count >= k)
      high = below, upto = count;
    else
      low = above, before = count;
  }
  if (!(low < high)) return low;
  std::vector<double> left;
  std::size_t i = 0;
  for (const double y : b) {
    while (i < a.size() && y - a[i] > high) ++i;
    for (std::size_t j = i; j < a.size() && y - a[j] >= low; ++j) left.push_back(y - a[j]);
  }
  const auto place = left.begin() + static_cast<std::ptrdiff_t>(k - before - 1);
  std::nth_element(left.begin(), place, left.end());
  return *place;
}

}  // namespace

double quantile(std::vector<double> values, double p) {
  require_finite(values, "quantile");
  if (!(p >= 0 && p <= 1)) fail("quantile: expected p from 0 to 1, got ", p);
  const double h = static_cast<double>(values.size() - 1) * p;
  const auto lower = values.begin() + static_cast<std::ptrdiff_t>(h);
  std::nth_element(values.begin(), lower, values.end());
  const double part = h - std::floor(h);
  return part > 0 ? *lower + part * (*std::min_element(lower + 1, values.end()) - *lower) : *lower;
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

double relative_deviation(std::span<const double> values) {
  require_finite(values, "relative_deviation");
  if (values.size() < 2) fail("relative_deviation: expected at least 2 values, got ", values.size());
  const auto n = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / n;
  double sum = 0;
  for (const double x : values) sum += (x - mean) * (x - mean);
  return std::sqrt(sum / (n - 1)) / mean;
}

double two_sided_p(double z) { return 2 * boost::math::cdf(boost::math::complement(boost::math::normal(), std::abs(z))); }

double z_of(double p) { return boost::math::quantile(boost::math::complement(boost::math::normal(), p / 2)); }

RankTest mann_whitney(std::span<const double> a, std::span<const double> b) {
  require_finite(a, "mann_whitney");
  require_finite(b, "mann_whitney");
  const std::vector<double> low = sorted(a), high = sorted(b);
  std::vector<double> both(a.size() + b.size());
  std::merge(low.begin(), low.end(), high.begin(), high.end(), both.begin());
  const double ties = ranks_of(both).ties;
  const auto n = static_cast<double>(a.size()), m = static_cast<double>(b.size()), total = n + m;
  double u = 0;
  std::size_t less = 0, not_more = 0;  // of a, than the element of b
  for (const double y : high) {
    while (less < low.size() && low[less] < y) ++less;
    while (not_more < low.size() && low[not_more] <= y) ++not_more;
    u += static_cast<double>(less + not_more) / 2;
  }
  const auto size = static_cast<std::int64_t>(both.size());
  if (ties == 0 && size <= kExact)
    return {u, exact_p(orders_by_u(static_cast<std::int64_t>(a.size()), static_cast<std::int64_t>(b.size())), u), true};
  return {u, normal_p(u, n * m / 2, n * m / 12 * (total + 1 - ties / (total * (total - 1)))), false};
}

RankTest signed_rank(std::span<const double> differences) {
  require_finite(differences, "signed_rank");
  std::vector<double> values;
  for (const double x : differences)
    if (x != 0) values.push_back(x);
  std::sort(values.begin(), values.end(), [](double a, double b) { return std::abs(a) < std::abs(b); });
  std::vector<double> sizes;
  for (const double x : values) sizes.push_back(std::abs(x));
  const Ranks ranks = ranks_of(sizes);
  double sum = 0;
  for (std::size_t i = 0; i < values.size(); ++i)
    if (values[i] > 0) sum += ranks.rank[i];
  const auto n = static_cast<double>(values.size());
  if (ranks.ties == 0 && values.size() == differences.size() && static_cast<std::int64_t>(values.size()) <= kExact)
    return {sum, exact_p(signs_by_sum(static_cast<std::int64_t>(values.size())), sum), true};
  return {sum, normal_p(sum, n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24 - ranks.ties / 48), false};
}

Interval hodges_lehmann(std::span<const double> a, std::span<const double> b, double confidence) {
  require_finite(a, "hodges_lehmann");
  require_finite(b, "hodges_lehmann");
  const std::vector<double> low = sorted(a), high = sorted(b);
  const auto n = static_cast<std::int64_t>(a.size()), m = static_cast<std::int64_t>(b.size());
  const double pairs = static_cast<double>(n) * static_cast<double>(m);
  const std::int64_t end = n + m <= kExact ? exact_end(orders_by_u(n, m), confidence)
                                           : normal_end(pairs / 2, pairs * static_cast<double>(n + m + 1) / 12, confidence);
  return interval(n * m, end, [&](std::int64_t k) { return kth_difference(low, high, k); });
}

Interval hodges_lehmann(std::span<const double> differences, double confidence) {
  require_finite(differences, "hodges_lehmann");
  std::vector<double> averages;
  for (std::size_t i = 0; i < differences.size(); ++i)
    for (std::size_t j = i; j < differences.size(); ++j) averages.push_back((differences[i] + differences[j]) / 2);
  std::sort(averages.begin(), averages.end());
  const auto size = static_cast<std::int64_t>(differences.size());
  const auto n = static_cast<double>(size);
  const std::int64_t end = size <= kExact ? exact_end(signs_by_sum(size), confidence)
                                          : normal_end(n * (n + 1) / 4, n * (n + 1) * (2 * n + 1) / 24, confidence);
  return interval(static_cast<std::int64_t>(averages.size()), end,
                  [&](std::int64_t k) { return averages[static_cast<std::size_t>(k - 1)]; });
}

std::vector<double> benjamini_hochberg(std::span<const double> p) {
  if (p.empty()) return {};
  require_finite(p, "benjamini_hochberg");
  std::vector<std::size_t> order(p.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::sort(order.begin(), order.end(), [&](std::size_t i, std::size_t j) { return p[i] > p[j]; });
  std::vector<double> q(p.size());
  double least = 1;
  for (std::size_t i = 0; i < order.size(); ++i) {
    least = std::min(least, p[order[i]] * static_cast<double>(p.size()) / static_cast<double>(p.size() - i));
    q[order[i]] = least;
  }
  return q;
}

}  // namespace deltagauge::reports::compare
