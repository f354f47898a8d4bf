// The range driver (docs/range.md): per case and backend, what each stage spanned and whether one overflowed (rows of check
// "range"), then the bisected frontiers (rows of check "frontier").
#pragma once
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/sweep.h"
#include "oracle/oracle.h"
#include "reports/report.h"
#include "validate/loop.h"

namespace deltagauge::validate {

struct RangeOptions {
  oracle::Precision oracle = oracle::Precision::automatic;
  std::string backend = "*";              // glob; only backends that match this and the sweep's own glob run
  std::string filter = "*";               // glob over case ids and names
  std::vector<std::string> quantities{};  // of the frontiers; empty: all
  bool frontiers = true;
  bool cuda_missing_is_failure = false;  // --require-gpu
  Loop loop{};                           // its jobs are the lines of list_range
};

// Every case in math=precise and in math=fast, once each.
void take_both_modes(Sweep& sweep);

// reference.peer.NAME for every reference::peer_stagings(): schemes of other kernels, for range and nothing else.
void add_peer_backends(Registry& registry);

// Cases that a config wants refused make no row. An exception gives an error row, and the rest goes on.
void run_range(const Sweep& sweep, const Registry& registry, const RangeOptions& options, reports::Report& report);
// What run_range would run, as "case backend range" and "case backend frontier QUANTITY" lines.
std::vector<std::string> list_range(const Sweep& sweep, const Registry& registry, const RangeOptions& options);

}  // namespace deltagauge::validate
