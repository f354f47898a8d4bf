// deltagauge range, behind its flags.
#pragma once
#include <string>
#include <vector>

#include "validate/cli.h"

namespace deltagauge::validate::cli {

struct RangeArgs : RunArgs {
  std::vector<std::string> quantities;  // empty: all
  bool no_frontiers = false, both_math = false;
};
int range(const RangeArgs& args);

std::vector<std::string> range_quantities();  // what --quantity takes

}  // namespace deltagauge::validate::cli
