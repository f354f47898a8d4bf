// The statistics that judge timings. Every function refuses (Error) an empty list and numbers that are not finite.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace deltagauge::reports::compare {

// Definition 7 of Hyndman and Fan, "Sample quantiles in statistical packages" (1996): x[h] with h = (n - 1) p counted from
// 0, linear between neighbours. The median is quantile 1/2.
double quantile(std::vector<double> values, double p);
double median(std::vector<double> values);

// Sample standard deviation (n - 1) over the mean. Needs two values.
double relative_deviation(std::span<const double> values);

// Standard normal: the two-sided p of z, and the z whose two-sided p this is.
double two_sided_p(double z);
double z_of(double p);

// A rank test: its statistic, the two-sided p, and whether p comes from the exact null distribution.
struct RankTest {
  double statistic = 0, p = 1;
  bool exact = false;
};

// Mann and Whitney, "On a test of whether one of two random variables is stochastically larger than the other" (1947). The
// statistic counts the pairs with b > a, ties as 1/2. Exact without ties up to n + m = 50; else normal with the correction
// for ties and for continuity (Hollander and Wolfe, Nonparametric Statistical Methods, 4.1).
RankTest mann_whitney(std::span<const double> a, std::span<const double> b);

// Wilcoxon's signed ranks, "Individual comparisons by ranking methods" (1945). The statistic is the sum of the ranks of the
// positive values; zeros are left out. Exact without ties and zeros up to n = 50; else normal as above (ibid., 3.1).
RankTest signed_rank(std::span<const double> differences);

// An estimate and its distribution-free interval; an end is infinite where too few values allow none.
struct Interval {
  double centre = 0, low = 0, high = 0;
};

// Hodges and Lehmann, "Estimates of location based on rank tests" (1963): by how much b lies above a, the median of all
// b - a; the interval inverts Mann-Whitney (Hollander and Wolfe, 4.2 and 4.3). Time (n + m) log(n m).
Interval hodges_lehmann(std::span<const double> a, std::span<const double> b, double confidence);

// The same of one list: the median of the Walsh averages (x_i + x_j) / 2, i <= j (ibid., 3.2 and 3.3).
Interval hodges_lehmann(std::span<const double> differences, double confidence);

// Adjusted p of Benjamini and Hochberg, "Controlling the false discovery rate" (1995): q_(i) = min over j >= i of
// p_(j) m / j. Where no null hypothesis is false, the chance of any q < x is at most x.
std::vector<double> benjamini_hochberg(std::span<const double> p);

}  // namespace deltagauge::reports::compare
