// Which grid a gdn kernel gets (Schedule in gdn.h). Plain C++.
#pragma once
#include <cstdint>

#include "kernels/gdn/gdn.h"

namespace deltagauge::kernels::gdn {

// Rounds of resident blocks up to which idle blocks of a static grid are taken to cost less than blocks that look for their
// work. Not measured yet (docs/ladder.md#schedules).
inline constexpr std::int64_t kStaticRounds = 2;

// Whether a kernel of so many blocks at capacity, of which `resident` fit on the device at once, is run persistent.
constexpr bool runs_persistent(Schedule schedule, std::int64_t blocks, std::int64_t resident) {
  if (schedule == Schedule::automatic) return blocks > kStaticRounds * resident;
  return schedule == Schedule::persistent;
}

}  // namespace deltagauge::kernels::gdn
