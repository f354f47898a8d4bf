// What an automatic choice (of a schedule, of a variant) may cost: at most so many times the time of the best that was
// there.
#pragma once

namespace deltagauge::validate {

inline constexpr double kMostOverBest = 1.05;

}  // namespace deltagauge::validate
