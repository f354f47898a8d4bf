// deltagauge replay: sweeps or single cases through the replay driver, then the report and what the walks covered.
#include "validate/cli_replay.h"

#include <fmt/format.h>

#include <iostream>

#include "core/error.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/replay/replay.h"

namespace deltagauge::validate::cli {
namespace {

ReplayOptions options_of(const ReplayArgs& args) {
  ReplayOptions options;
  options.backend = args.backend;
  options.filter = args.filter;
  options.spans = writes_trace(args.outputs);
  options.walk = args.walk;
  if (args.step >= 0) options.step = static_cast<std::size_t>(args.step);
  options.times = !args.no_times;
  options.cuda_missing_is_failure = args.require_gpu;
  return options;
}

std::string coverage_table(const reports::Report& report) {
  Listing listing{{"backend", "replays", "differ", "transitions", "grew", "shrank", "case"}, {}};
  for (const reports::Result& row : report.results) {
    if (!row.values.contains("transitions")) continue;
    const auto value = [&](const char* name) { return fmt::format("{:.0f}", row.values.at(name)); };
    listing.rows.push_back({row.backend, value("replays"), value("replays_failed"),
                            value("transitions") + " of " + value("transitions_possible"), value("grew"), value("shrank"),
                            row.test});
  }
  return listing.rows.empty() ? "" : as_text(listing);
}

}  // namespace

int replay(const ReplayArgs& args) {
  const Registry registry = all_backends();
  require_known_backends(registry.match("*"), args.backend);
  ReplayOptions options = options_of(args);
  return drive(args, {.name = "replay",
                      .list = [&](const Sweep& sweep) { return list_replay(sweep, registry, options); },
                      .run =
                          [&](const Sweep& sweep, const Loop& loop, reports::Report& report) {
                            options.loop = loop;
                            run_replay(sweep, registry, options, report);
                          },
                      .finish =
                          [&](const reports::Report& report, std::ostream& out) {
                            const std::string table = coverage_table(report);
                            if (!table.empty() && !args.quiet) out << "\n" << table;
                            return report.exit_status();
                          }});
}

}  // namespace deltagauge::validate::cli
