// The only two numbers of the judge. Both are ratios of a measured error to a budget that is derived per row (budget.h),
// so they do not depend on op, shape, dtype, regime or kernel. calibration_test.cc holds them: every correct variant stays
// below, every planted fault above.
#pragma once

namespace deltagauge::validate {

// Row: ||got_t - want_t|| / B_t. Two runs that round in the same places err by independent samples of one law; 1 is
// equality of the two, the rest is what different chunking and summation order add.
inline constexpr double kRowRatio = 1.5;
// Element: |got_tj - want_tj| over its share B_t / sqrt(D) of the row. The largest of many normal samples lies near 5.
inline constexpr double kElementRatio = 9;

}  // namespace deltagauge::validate
