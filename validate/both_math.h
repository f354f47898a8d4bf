// --both-math: every case of a sweep in math=precise and in math=fast.
#pragma once
#include <vector>

#include "core/sweep.h"

namespace deltagauge::validate {

// One behind the other, precise first, and none twice where the sweep has both already.
std::vector<SweepCase> in_both_modes(const std::vector<SweepCase>& cases);

}  // namespace deltagauge::validate
