#include "validate/cli_shrink.h"

#include <fmt/format.h>

#include <filesystem>
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

namespace fs = std::filesystem;
using reports::Outcome, reports::Result;

SweepCase plain_case(const Case& c, std::string_view check) {
  SweepCase test;
  test.test = c;
  test.checks = {std::string(check)};
  return test;
}

// How a shrunk case is judged, as the failure was.
struct Judging {
  oracle::Precision oracle = oracle::Precision::automatic;
  bool require_gpu = false, isolate = false;
  double timeout = 0;  // seconds; 0: none
  std::string host{};  // how host.* run

  bool apart() const { return isolate || timeout > 0; }
  std::vector<std::string> flags() const {
    std::vector<std::string> words;
    if (oracle != oracle::Precision::automatic) words.insert(words.end(), {"--oracle", std::string(oracle::name(oracle))});
    if (require_gpu) words.emplace_back("--require-gpu");
    if (timeout > 0) words.insert(words.end(), {"--timeout", fmt::format("{}", timeout)});
    if (isolate) words.emplace_back("--isolate");
    if (!host.empty()) words.insert(words.end(), {"--host", host});
    return words;
  }
};

Result judged(const Case& c, const Backend& backend, const std::string& check, const Judging& how) {
  RunOptions options;
  options.oracle = how.oracle;
  for (const std::string& word : how.flags())
    options.loop.repro_flags += " " + (word.starts_with("--") ? word : shell_quoted(word));
  const SweepCase test = plain_case(c, check);
  if (!how.apart()) return run_one(test, backend, check, options);
  const auto command = [&](const std::string& task) {
    std::vector<std::string> words{"deltagauge", "validate", "--worker",  task,
                                   "--case",     to_id(c),   "--backend", std::string(backend.name()),
                                   "--check",    check};
    const auto flags = how.flags();
    words.insert(words.end(), flags.begin(), flags.end());
    return words;
  };
  Workers workers(command, how.timeout);
  options.loop.workers = &workers;
  return run_one(test, backend, check, options);
}

Shrunk shrink_one(const Case& c, const Backend& backend, const std::string& check, const Judging& as) {
  const JudgeCase judge = [&](const Case& one) { return judged(one, backend, check, as); };
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

// report.shrunkN.safetensors beside a report, N from number on: what is there may be read by this run, or be named in a
// report that --resume took rows from.
fs::path free_name(const std::string& report, std::size_t number) {
  for (;; ++number) {
    fs::path file = report;
    file.replace_extension(".shrunk" + std::to_string(number) + ".safetensors");
    if (!fs::exists(fs::symlink_status(file))) return file;
  }
}

// The case's tensors and, where the backend gives an answer at all, its outputs.
void dump(const Shrunk& small, const std::string& file, const Judging& how) {
  case_dump(to_id(small.smallest), file, small.result.outcome == Outcome::fail ? small.result.backend : "", how.host);
}

}  // namespace

void shrink_failures(const ValidateArgs& args, const Registry& registry, reports::Report& report) {
  const Judging how{oracle::parse_precision(args.oracle), args.require_gpu, args.isolate, args.timeout, args.host};
  const auto files = json_files(args.outputs);
  std::set<std::tuple<std::string, std::string, std::string>> done;
  for (Result& row : report.results) {
    if (Interrupts::asked()) return;
    if (row.outcome != Outcome::fail && !(how.apart() && row.outcome == Outcome::error)) continue;
    if (!done.emplace(row.backend, row.check, marks(row)[0]).second) continue;
    try {
      const Shrunk small = shrink_one(parse_id(row.test), registry.get(row.backend), row.check, how);
      if (files.empty()) {
        row.repro = small.result.repro;
        continue;
      }
      const fs::path file = free_name(files[0], done.size());
      dump(small, file.string(), how);
      row.repro = small.result.repro;
      row.shrunk = reports::ShrunkCase{to_id(small.smallest), file.string()};
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
  const Judging how{.oracle = oracle::parse_precision(args.oracle), .isolate = args.isolate, .timeout = args.timeout};
  const Interrupts interrupts;
  reports::Report report;
  for (const Backend* backend : registry.match(args.backend)) {
    if (!serves(*backend, c.problem)) continue;
    for (const CheckInfo& check : checks()) {
      if (!args.check.empty() && !names_check(args.check, check.name)) continue;
      const std::string name(check.name);
      Result row = judged(c, *backend, name, how);
      const bool fails = row.outcome == Outcome::fail || (how.apart() && row.outcome == Outcome::error);
      report.results.push_back(std::move(row));
      if (!fails) continue;
      const Shrunk small = shrink_one(c, *backend, name, how);
      if (!args.out.empty()) dump(small, args.out, how);
      std::cout << to_id(small.smallest) << "\n"
                << small.result.backend << " " << name << ": " << small.result.reason << "\nagain: " << small.result.repro
                << "\n";
      if (!Interrupts::asked()) return 0;
      std::cerr << "deltagauge: interrupted, there may be a smaller case\n";
      return 2;
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
