// The replay driver (docs/replay.md): per case and backend, one capture at the case's capacity, replayed over a walk of
// layouts and held bit for bit against calls on fresh memory (rows of check "replay"), then, on a device, the time of a
// replay against the active part of the capacity (rows of check "replay-time-PART") and, where a backend chooses among
// schedules, what it chose against the better one (rows of check "replay-choice-PART").
#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/sweep.h"
#include "reports/report.h"
#include "validate/loop.h"
#include "validate/replay/replayable.h"

namespace deltagauge::validate {

struct ReplayOptions {
  std::string backend = "*";          // glob; only backends that match this and the sweep's own glob run
  std::string filter = "*";           // glob over case ids and names
  std::uint64_t walk = 0;             // seed of the walk and of its layouts
  std::optional<std::size_t> step{};  // only this replay, at most last_step(), and the one before it
  bool times = true;
  bool spans = false;                    // keep what ran when, for a trace
  bool cuda_missing_is_failure = false;  // --require-gpu
  Loop loop{};                           // its jobs are the lines of list_replay
  std::function<std::unique_ptr<Replayable>(const Backend&, const Problem&, const Tensors&)> capture = make_replayable;
};

std::int64_t last_step();  // of a walk

// Cases that a config wants refused make no row. An exception gives an error row, and the rest goes on. Throws Error on a
// step past last_step().
void run_replay(const Sweep& sweep, const Registry& registry, const ReplayOptions& options, reports::Report& report);
// What run_replay would walk, as "case backend replay" lines.
std::vector<std::string> list_replay(const Sweep& sweep, const Registry& registry, const ReplayOptions& options);

}  // namespace deltagauge::validate
