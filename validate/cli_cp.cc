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
  if (args.configs.empty() && args.cases.empty()) fail("cp: expected CONFIG... or --case ID");
  if (args.segment < kernels::cp::kChunk || args.segment % kernels::cp::kChunk)
    fail("--segment: expected a multiple of ", kernels::cp::kChunk, " tokens, got ", args.segment);
  for (const std::int64_t degree : args.degrees)
    if (degree < 1) fail("--degree: expected at least 1, got ", degree);
  const validate::cp::StagedOps ops = validate::cp::reference_ops();
  validate::cp::Options options;
  options.oracle = oracle::parse_precision(args.oracle);
  options.backend = args.backend;
  options.filter = args.filter;
  if (!args.degrees.empty()) options.degrees = args.degrees;
  options.tables = args.tables;
  options.segment = args.segment;

  std::vector<reports::ConfigFile> files;
  const std::vector<Sweep> sweeps = sweeps_of(args, files);
  std::size_t total = 0;
  for (const Sweep& sweep : sweeps) {
    const auto lines = validate::cp::list_cp(sweep, ops, options);
    total += lines.size();
    if (args.list)
      for (const std::string& line : lines) std::cout << line << "\n";
  }
  if (total == 0) {
    std::string known;
    for (const auto& op : ops) known += " " + std::string(op->name());
    std::cerr << "deltagauge: no case and backend match; the backends are" << known << "\n";
  }
  if (args.list) return total ? 0 : 3;

  require_writable_outputs(args);
  reports::Report report = new_report(args, std::move(files));
  Progress progress(total);
  if (!args.quiet) options.progress = [&](const reports::Result& row) { progress.step(row); };
  for (const Sweep& sweep : sweeps) validate::cp::run_cp(sweep, ops, options, report);
  progress.clear();
  write_outputs(args, report);
  return report.exit_status();
}

}  // namespace deltagauge::validate::cli
