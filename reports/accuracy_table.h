// The accuracy table of docs/numerics.md, in Markdown, from the accuracy results of one or more reports.
#pragma once
#include <span>
#include <string>

#include "reports/report.h"

namespace deltagauge::reports {

// One row per (backend, io dtype, tensor): number of cases, the worst of each metric over them, and the case with the worst
// row ratio. Only judged results of the check "accuracy" count. Throws Error when there are none, or on an id it cannot
// read.
std::string accuracy_table(std::span<const Report> reports);

}  // namespace deltagauge::reports
