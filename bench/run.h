// The timing loop: case -> inputs -> backend -> gate -> timers -> rows. Used by the deltagauge binary.
#pragma once
#include <cstddef>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/sweep.h"
#include "oracle/oracle.h"
#include "reports/compare/stop_rule.h"
#include "reports/report.h"
#include "validate/loop.h"

namespace deltagauge::bench {

struct BenchOptions {
  std::vector<std::string> timers{"graph-hot", "graph-cold", "eager-hot", "cpu"};  // those that suit the backend are used
  reports::compare::StopOptions stop;
  oracle::Precision oracle = oracle::Precision::automatic;
  std::string backend = "*", filter = "*";  // globs over backends, and over case ids and names
  bool cuda_missing_is_failure = false;
  bool spans = false;                       // keep what ran when, for a trace
  std::int64_t gate_token_heads = 1 << 17;  // (token, head) pairs that the gate judges of a case at most (validate/slice.h)
  validate::Loop loop{};                    // a job is a case on a backend, behind one gate
};

// For each case and backend: the accuracy row that gates it, then one row per timer, with the time of a call and digests of
// the outputs it was judged on. Where the gate fails, the timers' rows are errors that say so. Sets report.roofline.
void run_bench(const Sweep& sweep, const Registry& registry, const BenchOptions& options, reports::Report& report);

// What run_bench would run, as "case backend timer" lines.
std::vector<std::string> list_bench(const Sweep& sweep, const Registry& registry, const BenchOptions& options);
std::size_t count_bench_jobs(const Sweep& sweep, const Registry& registry, const BenchOptions& options);

}  // namespace deltagauge::bench
