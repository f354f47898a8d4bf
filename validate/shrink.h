// Shrinking: the smallest case found on which the same check still fails in the same tensor. Sequences by ddmin, heads,
// tokens by halving (whole chunks first, so that a position in its chunk stays), head sizes, axes back to plain ones, then
// values: constants, zeroed ranges, few mantissa bits, as overrides. What comes out is a case id like any other.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/problem.h"
#include "reports/report.h"

namespace deltagauge::validate {

using JudgeCase = std::function<reports::Result(const Case&)>;  // by the same backend and check every time

struct ShrinkOptions {
  std::int64_t chunk = 64;  // of the backend's staging
  std::int64_t max_runs = 2000;
  std::function<bool()> stopped;                                          // may be empty; true ends it with what it has
  std::function<void(std::int64_t runs, const Case& smallest)> progress;  // may be empty
};

struct Shrunk {
  Case smallest;
  reports::Result result;  // of the smallest case
  std::int64_t runs = 0;
};

// Throws Error when the case does not fail.
Shrunk shrink(const Case& failing, const JudgeCase& judge, const ShrinkOptions& options);

// What a failure is recognised by: the tensors named in its reason, or for an error row the reason. Empty: no failure.
std::vector<std::string> marks(const reports::Result& result);

}  // namespace deltagauge::validate
