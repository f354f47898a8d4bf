// bench --against BINARY: this build and another on the same sweep, turn by turn, each run in a process of its own.
#pragma once
#include <string>
#include <vector>

#include "reports/compare/compare.h"
#include "reports/report.h"
#include "validate/cli.h"

namespace deltagauge::validate::cli {

struct Against {
  int blocks = 0;               // that ended
  reports::Report base, fresh;  // of the first block: the other binary's and this one's
  std::vector<reports::compare::InterleavedRow> rows;
};
// args.blocks blocks of runs, each other, this, this, other; what drifts evenly cancels within one. Throws Error when a
// binary cannot be run or gives no report. An interrupt (cli_output.h) ends it with the blocks that are whole.
Against run_against(const BenchArgs& args);

}  // namespace deltagauge::validate::cli
