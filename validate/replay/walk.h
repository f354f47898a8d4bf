// One job of the replay driver: a backend and its schedules over the walk, step by step beside each other, so that inputs
// are drawn and the eager call is made once a step.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/sweep.h"
#include "reports/report.h"
#include "validate/replay/replay.h"
#include "validate/replay/replayable.h"

namespace deltagauge::validate {

struct ReplayJob {
  const SweepCase* test;
  const Backend* backend;
  const Backend* eager;  // whose calls the replays are held against: the backend itself, or the one it is a schedule of
};

// The row of a job that passes so far.
reports::Result row_of(const ReplayJob& job, std::string_view check);
// The command that shows a job's failure again. step: the replay of the walk that is enough.
std::string repro_of(const ReplayJob& job, const ReplayOptions& options, std::optional<std::size_t> step = {});

// Work for a row, on a clock of the row's own that stands while there is work for another one: so many seconds and spans
// more. An exception makes the row an error.
void work_on(reports::Result& row, const ReplayOptions& options, const std::function<void()>& work);

void load(Replayable& replay, const Tensors& inputs);

// One backend of a job over the walk.
struct Walked {
  ReplayJob job;
  std::unique_ptr<Replayable> replay;  // null where there was nothing to walk
  reports::Result row;                 // passes until the walk has ended, unless there is no going on
  std::int64_t failed = 0;             // replays

  bool goes_on() const { return replay && row.outcome == reports::Outcome::pass; }
};

// The backend of a job, then its schedules where it has been captured. What a step needs is in the seconds of the first row
// that needs it, so that those of all rows add up to what the walks took. Throws Error on a step past last_step().
std::vector<Walked> walked(const ReplayJob& job, const ReplayOptions& options);

}  // namespace deltagauge::validate
