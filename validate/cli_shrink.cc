#include "validate/cli_shrink.h"

#include <fmt/format.h>

#include <iostream>
#include <set>
#include <tuple>

#include "core/error.h"
#include "reference/staging.h"
#include "validate/checks/check.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/isolate.h"
#include "validate/shrink.h"

namespace deltagauge::validate::cli {
namespace {

using reports::Outcome, reports::Result;

SweepCase plain_case(const Case& c, std::string_view check) {
  SweepCase test;
  test.test = c;
  test.checks = {std::string(check)};
  return test;
}

// One job in a process of its own.
Result judge_apart(const Case& c, const Backend& backend, const std::string& check, const RunOptions& options,
                   double timeout) {
  const SweepCase test = plain_case(c, check);
  const auto command = [&](const std::string& task) {
    return std::vector<std::string>{"deltagauge", "validate", "--worker",  task,
                                    "--case",     to_id(c),   "--backend", std::string(backend.name()),
                                    "--check",    check,      "--oracle",  std::string(oracle::name(options.oracle))};
  };
  Workers workers(command, timeout);
  RunOptions apart = options;
  apart.workers = &workers;
  return run_one(test, backend, check, apart);
}

Shrunk shrink_one(const Case& c, const Backend& backend, const std::string& check, const RunOptions& from, bool apart,
                  double timeout) {
  RunOptions options;
  options.oracle = from.oracle;
  options.repro_flags = from.repro_flags;
  const JudgeCase judge = [&](const Case& one) {
    if (apart) return judge_apart(one, backend, check, options, timeout);
    return run_one(plain_case(one, check), backend, check, options);
  };
  ShrinkOptions how;
  if (const std::int64_t chunk = reference::staging(backend.staging(c.problem)).chunk) how.chunk = chunk;
  how.stopped = Interrupts::asked;
  StatusLine line;
  how.progress = [&](std::int64_t runs, const Case& smallest) {
    if (line.due()) line.show(fmt::format("shrinking, run {}: {} {}  {}", runs, backend.name(), check, to_id(smallest)));
  };
  Shrunk small = shrink(c, judge, how);
  line.clear();
  return small;
}

}  // namespace

void shrink_failures(const ValidateArgs& args, const RunOptions& options, const Registry& registry,
                     reports::Report& report) {
  const bool apart = args.isolate || args.timeout > 0;
  std::set<std::tuple<std::string, std::string, std::string>> done;
  for (Result& row : report.results) {
    if (Interrupts::asked()) return;
    if (row.outcome != Outcome::fail && !(apart && row.outcome == Outcome::error)) continue;
    if (!done.emplace(row.backend, row.check, marks(row)[0]).second) continue;
    try {
      const Shrunk small =
          shrink_one(parse_id(row.test), registry.get(row.backend), row.check, options, apart, args.timeout);
      row.repro = small.result.repro;
    } catch (const Error& e) {  // a ceiling, a refusal that was wanted, tensors from a file: they are not in the id
      if (!args.quiet)
        std::cerr << "deltagauge: " << row.backend << " " << row.check << " is not shrunk: " << e.what() << "\n";
    }
  }
}

int case_shrink(const ShrinkArgs& args) {
  const Case c = parse_id(args.id);
  if (!args.check.empty()) require_known_checks("--check", {args.check});
  const Registry registry = all_backends(args.backend);
  require_known_backends(registry.match("*"), args.backend);
  require_writable_output("--out", args.out);
  RunOptions options;
  options.oracle = oracle::parse_precision(args.oracle);
  if (args.oracle != "auto") options.repro_flags += " --oracle " + args.oracle;
  if (args.timeout > 0) options.repro_flags += fmt::format(" --timeout {}", args.timeout);
  if (args.isolate) options.repro_flags += " --isolate";
  const bool apart = args.isolate || args.timeout > 0;
  const Interrupts interrupts;
  reports::Report report;
  for (const Backend* backend : registry.match(args.backend)) {
    if (!serves(*backend, c.problem)) continue;
    for (const CheckInfo& check : checks()) {
      if (!args.check.empty() && !names_check(args.check, check.name)) continue;
      const std::string name(check.name);
      Result row = apart ? judge_apart(c, *backend, name, options, args.timeout)
                         : run_one(plain_case(c, name), *backend, name, options);
      const bool fails = row.outcome == Outcome::fail || (apart && row.outcome == Outcome::error);
      report.results.push_back(std::move(row));
      if (!fails) continue;
      const Shrunk small = shrink_one(c, *backend, name, options, apart, args.timeout);
      if (!args.out.empty())
        case_dump(to_id(small.smallest), args.out, small.result.outcome == Outcome::fail ? small.result.backend : "");
      std::cout << to_id(small.smallest) << "\n"
                << small.result.backend << " " << name << ": " << small.result.reason << "\nagain: " << small.result.repro
                << "\n";
      return 0;
    }
  }
  const auto s = report.summary();
  std::string error;
  for (const Result& row : report.results)
    if (row.outcome == Outcome::error) error = "; " + row.backend + " " + row.check + ": " + row.reason;
  fail("case shrink: expected a case that fails, got ", s.passed, " passed, ", s.skipped, " skipped, ", s.errors, " errors",
       error);
}

}  // namespace deltagauge::validate::cli
