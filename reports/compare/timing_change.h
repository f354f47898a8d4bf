// The statistics of one pair of rows: from sessions of samples to a change of time. Internal to reports/compare.
#pragma once
#include <vector>

#include "reports/compare/compare.h"

namespace deltagauge::reports::compare {

// Samples of one session, in the order of measuring.
using Session = std::vector<double>;

// What the samples of a row say, before session shifts come in.
struct Sampled {
  double base = 0, fresh = 0;  // medians
  Interval shift;              // of log times
  double variance = 0;         // of shift.centre, from the samples
  double weight = 0;           // tau^2 weight is the variance of shift.centre from session shifts
  double p_samples = 1;
  std::vector<double> residuals;           // of sessions: deviations from their side's mean, scaled to variance tau^2 + ...
  std::vector<double> residual_variances;  // ... this, from samples
};
// At least one session a side, of positive times.
Sampled sample_rows(const std::vector<Session>& base, const std::vector<Session>& fresh, double confidence);

// tau over a sweep; never less than options.session_sd.
double session_sd(std::span<const Sampled> rows, const CompareOptions& options);

// Ratio, interval and p (q is still to come).
TimeChange change(const Sampled& row, double tau, std::size_t rows, const CompareOptions& options);

// Sets the q of all, and says of each whether it is a real change.
void adjust(std::span<TimeChange* const> changes);
bool real(const TimeChange& change, const CompareOptions& options);

}  // namespace deltagauge::reports::compare
