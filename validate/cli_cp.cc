// deltagauge cp: sweeps or single cases through the check of context parallelism, then the report.
#include "validate/cli_cp.h"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>

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

namespace {

void require_known_table(const std::string& name) {
  const std::vector<std::string> tables = cp_tables();
  if (std::ranges::count(tables, name)) return;
  std::string known;
  for (const std::string& table : tables) known += " " + table;
  fail("--table: expected one of", known, ", got '", name, "'");
}

// What cuts anywhere cost: per output the errors of all rows together, over their budget and over the errors unsharded.
std::string errors_table(const reports::Report& report) {
  Listing listing{{"backend", "output", "tables", "error/budget", "error/unsharded", "case"}, {}};
  for (const reports::Result& row : report.results)
    for (const auto& [output, metrics] : row.tensors) {
      const auto value = [&](const std::string& name) { return fmt::format("{:.3g}", row.values.at(name)); };
      listing.rows.push_back({row.backend, output, value("anywhere.tables"), value(output + ".error_over_budget"),
                              value(output + ".error_over_unsharded"), row.test});
    }
  return listing.rows.empty() ? "" : as_text(listing);
}

}  // namespace

int cp(const CpArgs& args) {
  using kernels::cp::kChunk, kernels::cp::kMostSegment, validate::cp::kMostDegree;
  if (args.segment < kChunk || args.segment > kMostSegment || args.segment % kChunk)
    fail("--segment: expected a multiple of ", kChunk, " in [", kChunk, ", ", kMostSegment, "], got ", args.segment);
  for (const std::int64_t degree : args.degrees)
    if (degree < 1 || degree > kMostDegree) fail("--degree: expected one in [1, ", kMostDegree, "], got ", degree);
  for (const std::string& table : args.tables) require_known_table(table);
  const validate::cp::StagedOps ops = validate::cp::all_ops();
  std::vector<std::string_view> names;
  for (const auto& op : ops) names.push_back(op->name());
  require_known_backends(names, args.backend);
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
                          [&](const reports::Report& report, std::ostream& out) {
                            const std::string table = errors_table(report);
                            if (!table.empty() && !args.quiet) out << "\n" << table;
                            return report.exit_status();
                          }});
}

}  // namespace deltagauge::validate::cli
