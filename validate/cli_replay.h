// deltagauge replay, behind its flags.
#pragma once
#include "validate/cli.h"

namespace deltagauge::validate::cli {

struct ReplayArgs : RunArgs {
  std::uint64_t walk = 0;  // seed of the walk
  std::int64_t step = -1;  // only this replay and the one before it; negative: all
  bool no_times = false;
};
int replay(const ReplayArgs& args);

}  // namespace deltagauge::validate::cli
