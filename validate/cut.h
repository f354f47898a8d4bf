// A case cut to fewer sequences, tokens, heads and channels. Inputs are functions of coordinates (core/inputs.h), so that
// what remains keeps its values, but for the norms of keys that lose channels. Overrides follow the rows they were written
// for.
#pragma once
#include <cstdint>
#include <vector>

#include "core/problem.h"

namespace deltagauge::validate {

struct Cut {
  std::vector<std::size_t> sequences;         // those that stay, by place
  std::vector<std::int64_t> lengths;          // theirs, from the first token; at most what they were
  std::int64_t HK = 1, HV = 1, K = 1, V = 1;  // the first of each stay
};
Cut whole(const Case& c);

// Rows past the active end stay as many as they were. The result may be one that check() refuses (HV no multiple of HK).
Case cut(const Case& c, const Cut& to);

}  // namespace deltagauge::validate
