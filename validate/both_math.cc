#include "validate/both_math.h"

#include <algorithm>

namespace deltagauge::validate {

std::vector<SweepCase> in_both_modes(const std::vector<SweepCase>& cases) {
  std::vector<SweepCase> both;
  for (SweepCase test : cases)
    for (const MathMode mode : {MathMode::precise, MathMode::fast}) {
      test.test.problem.math = mode;
      if (std::none_of(both.begin(), both.end(), [&](const SweepCase& other) { return other.test == test.test; }))
        both.push_back(test);
    }
  return both;
}

}  // namespace deltagauge::validate
