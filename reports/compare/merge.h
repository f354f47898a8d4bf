// Joins the reports of the shards of one run.
#pragma once
#include <span>
#include <string>

#include "reports/report.h"

namespace deltagauge::reports::compare {

// Results in the order of the shards, then of each; host, start and argv of the first, the first roofline that there is.
// Throws Error when there is none, when tool, device or configs differ, and when two rows have one (case, backend, check).
Report merge(std::span<const Report> shards);

// Throws Error, beginning with where, when tool, device or configs differ: rows of the two do not belong in one report.
void require_same_run(const std::string& where, const Report& want, const Report& got);

}  // namespace deltagauge::reports::compare
