// Timings as text for people: a line a timing row, grouped by case.
#pragma once
#include <string>

#include "reports/report.h"

namespace deltagauge::reports {

// "" when the report has no timing. Times in microseconds of one call. width: columns of the terminal, 0 for no limit; only
// case ids pass it.
std::string timing_table(const Report& report, int width);

}  // namespace deltagauge::reports
