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
  if (args.configs.empty() && args.cases.empty()) fail("replay: expected CONFIG... or --case ID");
  const Registry registry = all_backends();
  require_known_backends(registry.match("*"), args.backend);
  std::vector<reports::ConfigFile> files;
  const std::vector<Sweep> sweeps = sweeps_of(args, files);
  ReplayOptions options = options_of(args);

  std::size_t total = 0;
  for (const Sweep& sweep : sweeps) {
    const auto lines = list_replay(sweep, registry, options);
    total += lines.size();
    if (args.list)
      for (const std::string& line : lines) std::cout << line << "\n";
  }
  if (args.list) return total ? 0 : 3;

  require_writable_outputs(args);
  reports::Report report = new_report(args, std::move(files));
  Progress progress(total);
  if (!args.quiet) options.progress = [&](const reports::Result& row) { progress.step(row); };
  for (const Sweep& sweep : sweeps) run_replay(sweep, registry, options, report);
  progress.clear();
  write_outputs(args, report);
  const std::string table = coverage_table(report);
  if (!table.empty() && !args.quiet) (args.outputs.json == "-" ? std::cerr : std::cout) << "\n" << table;
  if (report.results.empty()) std::cerr << "deltagauge: no case and backend match\n";
  return report.exit_status();
}

}  // namespace deltagauge::validate::cli
