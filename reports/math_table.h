// The math table: fast and precise math side by side, of rows that hold both (check fast, and math-TIMER of bench).
#pragma once
#include <string>

#include "reports/report.h"

namespace deltagauge::reports {

// "" where no row holds both. Lines are cut at width (0: unlimited).
std::string math_table(const Report& report, int width);

}  // namespace deltagauge::reports
