// deltagauge bench: sweeps or single cases through the timing loop, then the report, then the comparison with a baseline.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "bench/run.h"
#include "bench/timer.h"
#include "core/error.h"
#include "reports/compare/compare.h"
#include "reports/json.h"
#include "validate/cli.h"
#include "validate/cli_against.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"

namespace deltagauge::validate::cli {
namespace {

bench::BenchOptions options_of(const BenchArgs& args) {
  bench::BenchOptions options;
  for (const std::string& timer : args.timers) {
    const auto known = bench::timers();
    if (std::find(known.begin(), known.end(), timer) == known.end())
      fail("--timer: expected graph-hot, graph-cold, eager-hot or cpu, got '", timer, "'");
  }
  if (args.min_time > args.max_time)
    fail("--min-time: expected at most the ", args.max_time, " s of --max-time, got ", args.min_time);
  if (!args.timers.empty()) options.timers = args.timers;
  options.stop.min_time = args.min_time;
  options.stop.timeout = args.max_time;
  options.stop.max_noise = 0.01 * args.max_noise;
  options.oracle = oracle::parse_precision(args.oracle);
  options.backend = args.backend;
  options.filter = args.filter;
  options.both_math = args.both_math;
  options.spans = writes_trace(args.outputs);
  options.cuda_missing_is_failure = args.require_gpu;
  return options;
}

// What a failed row's own command line needs besides what every subcommand takes: how its times were taken.
std::string measure_flags(const BenchArgs& args) {
  const BenchArgs usual;
  std::string flags;
  const auto add = [&](const char* flag, double given, double by_default) {
    if (given != by_default) flags += fmt::format(" {} {}", flag, given);
  };
  add("--min-time", args.min_time, usual.min_time);
  add("--max-time", args.max_time, usual.max_time);
  add("--noise", args.max_noise, usual.max_noise);
  return flags;
}

// The gravest of two exit statuses: 1 before 2 before 3 before 0.
int graver(int a, int b) { return a && b ? std::min(a, b) : std::max(a, b); }

// This build against another, turn by turn: a row that is slower, or that fails its gate in this build alone, is a
// regression.
int bench_against(const BenchArgs& args) {
  if (args.configs.empty() && args.cases.empty()) fail("bench: expected CONFIG... or --case ID");
  if (!args.baselines.empty()) fail("--against: expected no --baseline beside it");
  if (!args.resume.empty()) fail("--against: expected no --resume beside it, since the blocks of one run are compared");
  if (apart(args)) fail("--against: expected no --isolate or --timeout beside it, every run has a process of its own");
  require_writable_outputs(args, {args.against});
  const Interrupts interrupts;
  Against runs = run_against(args);
  if (runs.blocks == 0) fail("--against: interrupted before the first block ended, nothing to compare");
  runs.fresh.jobs_left = args.blocks - runs.blocks;
  write_outputs(args, runs.fresh);
  if (runs.rows.empty()) return runs.fresh.exit_status();
  const auto comparison = reports::compare::compare_interleaved(runs.rows);
  const auto answers = reports::compare::compare(runs.base, runs.fresh, {.bits = args.bits});  // accuracy and bits
  const bool worse = std::any_of(answers.pairs.begin(), answers.pairs.end(),
                                 [](const auto& pair) { return pair.failed && (pair.accuracy || !pair.time); });
  std::ostream& out = args.outputs.json == "-" ? std::cerr : std::cout;
  out << "\n" << reports::compare::text(comparison, stdout_style().width);
  if (worse) out << "\n" << reports::compare::text(answers, stdout_style().width);
  if (runs.fresh.jobs_left) {
    std::cerr << "deltagauge: interrupted, " << runs.fresh.jobs_left << " of " << args.blocks << " blocks left\n";
    return 2;
  }
  return graver(graver(runs.fresh.exit_status(), comparison.exit_status()), worse ? 1 : 0);
}

}  // namespace

int bench(const BenchArgs& args) {
  const Registry registry = all_backends();
  require_known_backends(registry.match("*"), args.backend);
  bench::BenchOptions options = options_of(args);
  if (!args.against.empty() && !args.list) return bench_against(args);
  std::vector<reports::Report> baselines;
  for (const std::string& path : args.baselines) baselines.push_back(reports::load_report(path));
  require_finished(args.baselines, baselines);

  return drive(args, {.name = "bench",
                      .list = [&](const Sweep& sweep) { return bench::list_bench(sweep, registry, options); },
                      .jobs = [&](const Sweep& sweep) { return bench::count_bench_jobs(sweep, registry, options); },
                      .run =
                          [&](const Sweep& sweep, const Loop& loop, reports::Report& report) {
                            options.loop = loop;
                            options.loop.repro_flags += measure_flags(args);
                            bench::run_bench(sweep, registry, options, report);
                          },
                      .finish =
                          [&](const reports::Report& report, std::ostream& out) {
                            if (baselines.empty()) return report.exit_status();
                            const auto comparison =
                                reports::compare::compare(baselines, std::span(&report, 1),
                                                          {.across_devices = args.across_devices, .bits = args.bits});
                            out << "\n" << reports::compare::text(comparison, stdout_style().width);
                            return graver(report.exit_status(), comparison.exit_status());
                          },
                      .also_read = args.baselines});
}

}  // namespace deltagauge::validate::cli
