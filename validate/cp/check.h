// The check of context parallelism (docs/cp.md#check). Per case and staged op, over degrees and fragment tables:
//   documents   cuts between documents only, documents not cut into segments: the bits of the op as it is without ranks
//   boundaries  cuts on canonical boundaries: the bits of the same walk on one rank, which is itself within the budget
//   anywhere    cuts at any token: row by row within the budget of the op with its chunks where the plan's are, and all rows
//               together within the budget of the op unsharded
//   graph       where an op has one: one captured call a degree, replayed on all of these tables: the bits of eager calls
// On lattice inputs nothing rounds, so every one of them must give the bits of the whole.
#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/sweep.h"
#include "oracle/oracle.h"
#include "reports/report.h"
#include "validate/context.h"
#include "validate/cp/sharded.h"
#include "validate/judge.h"
#include "validate/loop.h"

namespace deltagauge::validate::cp {

struct Options {
  oracle::Precision oracle = oracle::Precision::automatic;
  std::string backend = "*";                         // glob over the staged ops
  std::string filter = "*";                          // glob over case ids and names
  std::vector<std::int64_t> degrees{1, 2, 3, 4, 8};  // ranks
  std::vector<std::string> tables{};                 // kinds (kernels/cp/tables.h); empty: all
  std::int64_t segment = 128;                        // tokens of a canonical segment
  Fault fault = Fault::none;                         // in every run but those that others are held against
  bool cuda_missing_is_failure = false;              // --require-gpu: a skip for want of a GPU becomes a failure
  Loop loop{};                                       // its jobs are the lines of list_cp
};

struct CpVerdict {
  Verdict verdict;
  std::int64_t degree = 0;  // of the first run that failed; 0: none did, or one that every sweep makes
  std::string table{};
};
// One case and op. Throws Error when the machinery fails.
CpVerdict judge_cp(Context& context, const StagedOp& op, const Options& options);

// A row of check "cp" for each. Ops outside the sweep's `backend` glob still run when that glob names none of them.
void run_cp(const Sweep& sweep, const StagedOps& ops, const Options& options, reports::Report& report);
std::vector<std::string> list_cp(const Sweep& sweep, const StagedOps& ops, const Options& options);  // "case op cp"

}  // namespace deltagauge::validate::cp
