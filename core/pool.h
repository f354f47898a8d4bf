// The state pool of a Problem (docs/math.md#state-pool): which slot each sequence owns and whether it is read, from the text
// of the axes idx and has. Both go by the sequence's name, so a case cut to fewer sequences keeps its slots.
#pragma once
#include <string>
#include <string_view>

#include "core/problem.h"

namespace deltagauge::pool {

// The texts as an id holds them. Throws Error on anything else.
std::string parse_idx(std::string_view text);
std::string parse_has(std::string_view text);

// Throws Error when the pool does not fit the rest of the problem.
void check(const Problem& problem);

}  // namespace deltagauge::pool
