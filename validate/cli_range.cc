// deltagauge range: sweeps or single cases through the range driver, then the report and a line a frontier.
#include "validate/cli_range.h"

#include <fmt/format.h>

#include <iostream>

#include "core/error.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/frontier.h"
#include "validate/range.h"

namespace deltagauge::validate::cli {
namespace {

RangeOptions options_of(const RangeArgs& args) {
  RangeOptions options;
  options.oracle = oracle::parse_precision(args.oracle);
  options.backend = args.backend;
  options.filter = args.filter;
  options.quantities = args.quantities;
  options.frontiers = !args.no_frontiers;
  options.cuda_missing_is_failure = args.require_gpu;
  return options;
}

// What stands in a table cell: a value, or what its absence means.
std::string cell(const reports::Result& row, const std::string& key, const char* absent) {
  const auto found = row.values.find(key);
  return found == row.values.end() ? absent : fmt::format("{:.5g}", found->second);
}

std::string frontier_table(const reports::Report& report) {
  Listing listing{{"backend", "quantity", "safe up to", "unsafe from", "no overflow up to", "accurate up to", "case"}, {}};
  for (const reports::Result& row : report.results) {
    if (row.check != "frontier" || row.outcome == reports::Outcome::skip || row.outcome == reports::Outcome::error) continue;
    for (const std::string& quantity : range_quantities()) {
      const std::string at = quantity + ".";
      if (!row.values.contains(at + "largest_safe") && !row.values.contains(at + "smallest_unsafe")) continue;
      listing.rows.push_back(
          {row.backend, quantity, cell(row, at + "largest_safe", "-"), cell(row, at + "smallest_unsafe", "none found"),
           cell(row, at + "largest_without_overflow", "-"), cell(row, at + "largest_accurate", "-"), row.test});
    }
  }
  return listing.rows.empty() ? "" : as_text(listing);
}

}  // namespace

std::vector<std::string> range_quantities() {
  std::vector<std::string> names;
  for (const Quantity& quantity : quantities()) names.emplace_back(quantity.name);
  return names;
}

int range(const RangeArgs& args) {
  if (args.no_frontiers && !args.quantities.empty()) fail("--no-frontiers: expected no --quantity beside it");
  Registry registry = all_backends();
  add_peer_backends(registry);
  require_known_backends(registry.match("*"), args.backend);
  RangeOptions options = options_of(args);
  return drive(args, {.name = "range",
                      .list = [&](const Sweep& sweep) { return list_range(sweep, registry, options); },
                      .run =
                          [&](const Sweep& sweep, const Loop& loop, reports::Report& report) {
                            options.loop = loop;
                            run_range(sweep, registry, options, report);
                          },
                      .prepare =
                          [&](Sweep& sweep) {
                            if (args.both_math) take_both_modes(sweep);
                          },
                      .finish =
                          [&](const reports::Report& report, std::ostream& out) {
                            const std::string table = frontier_table(report);
                            if (!table.empty() && !args.quiet) out << "\n" << table;
                            return report.exit_status();
                          }});
}

}  // namespace deltagauge::validate::cli
