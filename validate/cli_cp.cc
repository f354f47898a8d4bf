// deltagauge cp: sweeps or single cases through the check of context parallelism, then the report.
#include "validate/cli_cp.h"

#include <algorithm>
#include <iostream>

#include "core/error.h"
#include "kernels/cp/tables.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/cp/check.h"

namespace deltagauge::validate::cli {

std::vector<std::string> cp_tables() {
  std::vector<std::string> names;
  for (const auto& kind : kernels::cp::table_kinds()) names.emplace_back(kind.name);
  return names;
}

int cp(const CpArgs& args) {
  if (args.segment < kernels::cp::kChunk || args.segment % kernels::cp::kChunk)
    fail("--segment: expected a multiple of ", kernels::cp::kChunk, " tokens, got ", args.segment);
  for (const std::int64_t degree : args.degrees)
    if (degree < 1) fail("--degree: expected at least 1, got ", degree);
  const validate::cp::StagedOps ops = validate::cp::all_ops();
  validate::cp::Options options;
  options.oracle = oracle::parse_precision(args.oracle);
  options.backend = args.backend;
  options.filter = args.filter;
  if (!args.degrees.empty()) options.degrees = args.degrees;
  options.tables = args.tables;
  options.segment = args.segment;
  options.cuda_missing_is_failure = args.require_gpu;

  return drive(args, {.name = "cp",
                      .list = [&](const Sweep& sweep) { return validate::cp::list_cp(sweep, ops, options); },
                      .run =
                          [&](const Sweep& sweep, const Loop& loop, reports::Report& report) {
                            options.loop = loop;
                            validate::cp::run_cp(sweep, ops, options, report);
                          },
                      .finish =
                          [&](const reports::Report& report, std::ostream&) {
                            if (report.results.empty())
                              for (const auto& op : ops) std::cerr << "deltagauge: a backend here is " << op->name() << "\n";
                            return report.exit_status();
                          }});
}

}  // namespace deltagauge::validate::cli
