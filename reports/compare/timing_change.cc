#include "reports/compare/timing_change.h"

#include <algorithm>
#include <cmath>

namespace deltagauge::reports::compare {
namespace {

constexpr std::size_t kBatches = 8, kLeastInBatch = 4, kLeastBatches = 4;
constexpr std::size_t kRowsForSpread = 20;  // fewer rows do not say how rows scatter
constexpr double kMostFromRows = 0.01;      // tau taken from the scatter of rows, at most
constexpr double kPower = 1.645;            // normal quantile of 19 in 20

std::vector<double> logs(const Session& samples) {
  std::vector<double> out;
  for (const double x : samples) out.push_back(std::log(x));
  return out;
}

double mean_of(const std::vector<double>& values) {
  double sum = 0;
  for (const double x : values) sum += x;
  return sum / static_cast<double>(values.size());
}

double variance_of(const std::vector<double>& values) {
  const double mean = mean_of(values);
  double sum = 0;
  for (const double x : values) sum += (x - mean) * (x - mean);
  return sum / static_cast<double>(values.size() - 1);
}

// Deviation of a normal law whose median absolute value this is (Hampel 1974).
double robust_sd(std::vector<double> values) {
  for (double& x : values) x = std::abs(x);
  return 1.4826 * median(std::move(values));
}

// Variance of a session's centre from the medians of its batches; 0 with too few samples to say.
double batch_variance(const std::vector<double>& values) {
  const std::size_t batches = std::min(kBatches, values.size() / kLeastInBatch);
  if (batches < kLeastBatches) return 0;
  std::vector<double> medians;
  for (std::size_t i = 0; i < batches; ++i) {
    const auto at = [&](std::size_t batch) {
      return values.begin() + static_cast<std::ptrdiff_t>(batch * values.size() / batches);
    };
    medians.push_back(median({at(i), at(i + 1)}));
  }
  return variance_of(medians) / static_cast<double>(batches);
}

// One side of a row: its samples pooled, so that a session weighs as many as it has.
struct Side {
  std::vector<double> pooled;              // logs
  double weight = 0;                       // sum of squared shares of the sessions
  double variance = 0;                     // of the pooled centre, by batches
  std::vector<double> centres, variances;  // by session
};

Side side_of(const std::vector<Session>& sessions) {
  Side side;
  std::vector<std::vector<double>> parts;
  for (const Session& session : sessions) {
    parts.push_back(logs(session));
    side.pooled.insert(side.pooled.end(), parts.back().begin(), parts.back().end());
  }
  for (const auto& part : parts) {
    const double share = static_cast<double>(part.size()) / static_cast<double>(side.pooled.size());
    side.weight += share * share;
    side.centres.push_back(median(part));
    side.variances.push_back(batch_variance(part));
    side.variance += share * share * side.variances.back();
  }
  return side;
}

}  // namespace

Sampled sample_rows(const std::vector<Session>& base, const std::vector<Session>& fresh, double confidence) {
  const Side a = side_of(base), b = side_of(fresh);
  Sampled out;
  out.base = std::exp(median(a.pooled));
  out.fresh = std::exp(median(b.pooled));
  out.shift = hodges_lehmann(a.pooled, b.pooled, confidence);
  const double se = (out.shift.high - out.shift.low) / (2 * z_of(1 - confidence));
  out.variance = std::max(se * se, a.variance + b.variance);
  out.weight = a.weight + b.weight;
  out.p_samples = mann_whitney(a.pooled, b.pooled).p;
  for (const Side* side : {&a, &b}) {
    const auto k = static_cast<double>(side->centres.size());
    if (k < 2) continue;
    const double mean = mean_of(side->centres);
    for (const double centre : side->centres) out.residuals.push_back((centre - mean) * std::sqrt(k / (k - 1)));
    out.residual_variances.insert(out.residual_variances.end(), side->variances.begin(), side->variances.end());
  }
  return out;
}

// Sessions of the same side differ by tau and by their samples. Where no side has two, the scatter of the rows about their
// median change says the same (an empirical null: Efron, "Large-scale simultaneous hypothesis testing", 2004), but a
// sweep in which most rows changed scatters too, so that it may raise tau to 1 % only.
double session_sd(std::span<const Sampled> rows, const CompareOptions& options) {
  std::vector<double> residuals, variances, changes, weights;
  for (const Sampled& row : rows) {
    residuals.insert(residuals.end(), row.residuals.begin(), row.residuals.end());
    variances.insert(variances.end(), row.residual_variances.begin(), row.residual_variances.end());
    changes.push_back(row.shift.centre);
    weights.push_back(row.weight);
  }
  double tau = options.session_sd;
  const auto square = [](double x) { return x * x; };
  if (residuals.size() >= kRowsForSpread)
    tau = std::max(tau, std::sqrt(std::max(0.0, square(robust_sd(residuals)) - median(variances))));
  else if (residuals.empty() && rows.size() >= kRowsForSpread) {
    const double middle = median(changes);
    std::vector<double> sampled;
    for (double& x : changes) x -= middle;
    for (const Sampled& row : rows)
      if (std::isfinite(row.variance)) sampled.push_back(row.variance);
    const double excess = sampled.empty() ? 0 : square(robust_sd(changes)) - median(sampled);
    tau = std::max(tau, std::min(kMostFromRows, std::sqrt(std::max(0.0, excess) / median(weights))));
  }
  return tau;
}

TimeChange change(const Sampled& row, double tau, std::size_t rows, const CompareOptions& options) {
  TimeChange out;
  out.base = row.base;
  out.fresh = row.fresh;
  const double z = z_of(1 - options.confidence), shifts = tau * tau * row.weight;
  const double least = z * std::sqrt(row.variance + shifts);  // batches may say more than the ranks
  const double below = std::max(least, std::hypot(row.shift.centre - row.shift.low, z * std::sqrt(shifts)));
  const double above = std::max(least, std::hypot(row.shift.high - row.shift.centre, z * std::sqrt(shifts)));
  out.ratio = {std::exp(row.shift.centre), std::exp(row.shift.centre - below), std::exp(row.shift.centre + above)};
  out.p_samples = row.p_samples;
  const double se = std::sqrt(row.variance + shifts);
  out.p = std::isfinite(se) ? std::max(row.p_samples, two_sided_p(row.shift.centre / se)) : 1;
  const double needed = std::max({z_of(options.q_limit / static_cast<double>(rows)) * se, std::log1p(options.floor),
                                  std::log1p(options.clear) + z * se});
  out.detectable = std::expm1(needed + kPower * se);
  return out;
}

void adjust(std::span<TimeChange* const> changes) {
  std::vector<double> p;
  for (const TimeChange* change : changes) p.push_back(change->p);
  const std::vector<double> q = benjamini_hochberg(p);
  for (std::size_t i = 0; i < q.size(); ++i) changes[i]->q = q[i];
}

bool real(const TimeChange& change, const CompareOptions& options) {
  if (change.q >= options.q_limit) return false;
  const bool slower = change.ratio.centre > 1;
  const auto beyond = [&](double ratio, double by) { return slower ? ratio > 1 + by : ratio < 1 / (1 + by); };
  return beyond(change.ratio.centre, options.floor) &&
         beyond(slower ? change.ratio.low : change.ratio.high, options.clear) &&
         (!change.cycles || beyond(*change.cycles, options.clear));
}

}  // namespace deltagauge::reports::compare
