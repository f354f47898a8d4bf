// One rank of a context-parallel run, held against the same run with its ranks as threads of one process. What the programs
// that start a rank a process or a rank a GPU share.
#pragma once
#include <string>
#include <vector>

#include "kernels/cp/transport.h"

namespace deltagauge::validate::cp {

// args: CASE [TABLE] [SEGMENT] [OP]; op_name stands for a missing OP. group carries the summaries, host what came out. Rank
// 0 says on stdout which outputs have the same bits. 0: all of them, or a rank other than 0. Throws Error on bad arguments,
// and on every rank, before anything is computed, where the ranks do not have the same build, case, inputs, op and plan.
int run_as_rank(const std::vector<std::string>& args, const char* op_name, kernels::cp::Transport& host,
                kernels::cp::Transport& group);

}  // namespace deltagauge::validate::cp
