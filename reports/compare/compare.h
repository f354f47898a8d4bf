// Compares two reports, or two groups of reports of repeated runs (sessions), row by row: times, accuracy, output bits.
//
// Noise of a timing has two parts. Samples of one session vary by about 1 % around the session's own centre, and more
// samples average that away. The centre itself moves by about 0.3 % (deviation tau) from session to session with addresses,
// clocks and temperature, and no number of samples of one session averages that. A rank test on samples alone takes every
// such move for a change once there are enough samples. So a pair's standard error is
//   se^2 = s^2 + tau^2 (1/k_base + 1/k_fresh)
// with s the larger of what the Hodges-Lehmann interval says and what the medians of batches of consecutive samples say
// (batch means: Flegal and Jones, "Batch means and spectral variance estimators in MCMC", 2010; it grows with drift and
// throttling, which leave samples dependent), and with tau over the whole sweep (session_sd()). Its p, two-sided normal of
// log ratio / se, must agree with Mann-Whitney on the samples: the larger p of the two is the pair's. q is Benjamini and
// Hochberg's over the sweep.
//
// A change is real when q < q_limit, the whole interval (Hodges-Lehmann's, widened by tau) is further than `clear` from
// 1, its centre further than `floor`, and cycles (time x SM clock, where clocks are known) say the same.
//
// Why the interval is not held against `floor` itself: a 2 % slowdown would then have to be found with an interval
// shorter than 0.5 % on a side, that is se < 0.14 % for 95 % power, 10 sessions a side. One session a side has
// se >= sqrt(2) tau = 0.42 %; q < 0.01 over 200 rows needs 4.06 se, 95 % power another 1.64 se, so a slowdown under 2.4 %
// cannot be told from noise so often, by any rule. With 4 sessions a side se is 0.25 % and 2 % is found
// (calibration_test.cc).
#pragma once
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/compare/statistics.h"
#include "reports/report.h"

namespace deltagauge::reports::compare {

struct CompareOptions {
  bool across_devices = false;  // compare reports of different devices
  bool bits = false;            // changed output bits fail
  bool allow_missing = false;   // rows that only base has do not fail
  double q_limit = 0.01;
  double floor = 0.015;  // smallest relative change worth a verdict
  double clear = 0.005;  // what the interval must clear
  double confidence = 0.95;
  double session_sd = 0.0035;  // tau, the least that is assumed: 0.3 % and something for drift within a session
};

// Worst first.
enum class Verdict { regression, invalid, missing, improvement, added, same };
std::string_view name(Verdict verdict);  // added is "new"

struct TimeChange {
  double base = 0, fresh = 0;  // medians, seconds
  Interval ratio{1, 1, 1};     // fresh / base
  double p_samples = 1;        // Mann-Whitney; interleaved: 1
  double p = 1, q = 1;
  double detectable = 0;         // the smallest slowdown that is found 19 times in 20, relative
  std::optional<double> cycles;  // fresh / base of time x SM clock
};

struct AccuracyChange {
  double base = 0, fresh = 0;  // worst row_ratio of any tensor
};

struct Pair {
  std::string test, backend, check;
  Verdict verdict = Verdict::same;
  bool failed = false;  // counts for the exit status
  std::optional<TimeChange> time;
  std::optional<AccuracyChange> accuracy;
  std::vector<std::string> changed_bits;  // outputs whose digests differ
  std::string note;
};

struct Comparison {
  std::vector<Pair> pairs;  // in the order of base, then what only fresh has
  std::vector<std::string> warnings;
  double session_sd = 0;  // tau as used
  // 1 when a pair failed; 0 when something was compared; else 3.
  int exit_status() const;
};

// Throws Error on reports of different devices (unless allowed), of different commits on one side, with two rows of one
// (case, backend, check), or without a report on a side.
Comparison compare(std::span<const Report> base, std::span<const Report> fresh, const CompareOptions& options = {});
Comparison compare(const Report& base, const Report& fresh, const CompareOptions& options = {});

// One block of an interleaved measurement, in the order base, fresh, fresh, base, each in a process of its own. What
// drifts linearly cancels in its log ratio.
struct Block {
  std::vector<double> base_first, fresh_first, fresh_second, base_second;  // samples
};
struct InterleavedRow {
  std::string test, backend, check;
  std::vector<Block> blocks;
};

// A block is one observation; p is that of Wilcoxon's signed ranks, the interval that of the Walsh averages. It assumes
// nothing about the size of session shifts, but n blocks reach p = 2^(1-n) at best: see blocks_needed.
Comparison compare_interleaved(std::span<const InterleavedRow> rows, const CompareOptions& options = {});

// The fewest blocks with which one changed row among so many can be found: 2^(1-n) rows < q_limit.
int blocks_needed(std::int64_t rows, double q_limit = CompareOptions{}.q_limit);

// A table, worst first, and the warnings; lines are cut at width unless it is 0.
std::string text(const Comparison& comparison, int width);

// {"schema": "deltagauge.comparison/1", "exit_status", "session_sd", "warnings", "pairs": [...]}, indented, ends in a
// newline; numbers that are not finite are strings as in a report.
std::string to_json(const Comparison& comparison);

}  // namespace deltagauge::reports::compare
