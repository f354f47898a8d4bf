#include "validate/loop.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "validate/isolate.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

bool contains(const std::vector<std::size_t>& numbers, std::size_t number) {
  return std::find(numbers.begin(), numbers.end(), number) != numbers.end();
}

const std::vector<Result>* known(const Loop& loop, const NamedJob& job) {
  return loop.known ? loop.known(job.name) : nullptr;
}

// The numbers of job i and of those behind it that are of its case and still to run.
std::vector<std::size_t> batch_of(const std::vector<NamedJob>& jobs, std::size_t i, const Loop& loop) {
  std::vector<std::size_t> numbers;
  for (std::size_t j = i; j < jobs.size() && jobs[j].test == jobs[i].test; ++j)
    if (j == i || !known(loop, jobs[j])) numbers.push_back(loop.first + j);
  return numbers;
}

// What is run again as a line of its own keeps the flags of this run.
void add_flags(std::vector<Result>& rows, const std::string& flags) {
  for (Result& row : rows)
    if (!row.repro.empty()) row.repro += flags;
}

}  // namespace

Result row_before(const SweepCase& test, std::string_view backend, std::string_view check) {
  Result row;
  row.test = to_id(test.test);
  row.name = test.name;
  row.op = test.test.problem.op;
  row.direction = test.test.problem.direction == Direction::fwd ? "fwd" : "bwd";
  row.backend = backend;
  row.check = check;
  return row;
}

void run_jobs(const std::vector<NamedJob>& jobs, const std::function<std::vector<Result>(std::size_t)>& run,
              const Loop& loop, reports::Report& report) {
  bool stopped = false;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    if (!loop.only.empty() && !contains(loop.only, loop.first + i)) continue;
    const NamedJob& job = jobs[i];
    std::vector<Result> rows;
    if (const auto* there = known(loop, job)) {
      rows = *there;
    } else if (stopped = stopped || (loop.stopped && loop.stopped()); stopped) {
      continue;  // what is known is taken over all the same
    } else if (loop.workers) {
      NamedJob broken = job;
      add_flags(broken.rows, loop.repro_flags);
      rows = loop.workers->run(batch_of(jobs, i, loop), std::move(broken));
    } else {
      rows = run(i);
      add_flags(rows, loop.repro_flags);
    }
    for (Result& row : rows) row.job = job.name;
    const auto first = static_cast<std::ptrdiff_t>(report.results.size());
    std::move(rows.begin(), rows.end(), std::back_inserter(report.results));
    if (loop.done) loop.done({report.results.begin() + first, report.results.end()});
  }
}

}  // namespace deltagauge::validate
