// The loop over jobs that validate, bench, range, replay and cp share: what an earlier run judged is taken over, the rest is
// judged here or in a process of its own (isolate.h), until there is no more or someone asks to stop.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/sweep.h"
#include "reports/report.h"

namespace deltagauge::validate {

class Workers;

// What is run as one: a check of a backend on a case, or all that hangs on one gate or one capture.
struct NamedJob {
  std::string name;                   // "CASE BACKEND CHECK"
  std::size_t test = 0;               // which case; those of one case share what a process has worked out for it
  std::vector<reports::Result> rows;  // what stands in the report should its process end: errors, but for the reason
};

struct Loop {
  std::function<void(std::span<const reports::Result> rows)> done;  // after each job, with its rows; may be empty
  std::function<bool()> stopped;  // asked before each job; true leaves out what is not known; may be empty
  // The rows of a job that are there already, or null; may be empty.
  std::function<const std::vector<reports::Result>*(const std::string& job)> known;
  std::string repro_flags;  // for every repro line: --oracle, --timeout, ...
  // Jobs have numbers, from first on in their order. Where there are workers, they judge.
  std::size_t first = 0;
  std::vector<std::size_t> only;  // run these alone; empty: all
  Workers* workers = nullptr;
};

// The row of a job on this case before anything ran: an error, since nothing was judged.
reports::Result row_before(const SweepCase& test, std::string_view backend, std::string_view check);

// Appends the rows of every job to the report. run gives those of job i, whatever happens.
void run_jobs(const std::vector<NamedJob>& jobs, const std::function<std::vector<reports::Result>(std::size_t i)>& run,
              const Loop& loop, reports::Report& report);

}  // namespace deltagauge::validate
