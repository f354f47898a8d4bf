// deltagauge validate: sweeps, single cases or given tensors through the judging loop, then the report.
#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <utility>

#include "core/error.h"
#include "core/sweep.h"
#include "reference/staging.h"
#include "validate/cli.h"
#include "validate/cli_run.h"
#include "validate/cli_shrink.h"
#include "validate/run.h"
#include "validate/tensors.h"

namespace deltagauge::validate::cli {
namespace {

namespace fs = std::filesystem;

RunOptions options_of(const ValidateArgs& args) {
  RunOptions options;
  options.oracle = oracle::parse_precision(args.oracle);
  options.checks = args.checks;
  options.backend = args.backend;
  options.filter = args.filter;
  options.maps = args.maps;
  options.spans = writes_trace(args.outputs);
  options.cuda_missing_is_failure = args.require_gpu;
  for (const std::string& text : args.settings) options.config_flags += " --set " + shell_quoted(text);
  if (!args.seed.empty()) options.config_flags += " --seed " + args.seed;
  if (!args.staging.empty()) options.config_flags += " --staging " + args.staging;
  return options;
}

Loop loop_of(const ValidateArgs& args, Loop loop) {
  if (!args.host.empty()) loop.repro_flags += " --host " + shell_quoted(args.host);
  return loop;
}

Driver validate_driver() {
  Driver driver;
  driver.name = "validate";
  driver.finish = [](const reports::Report& report, std::ostream&) { return report.exit_status(); };
  return driver;
}

int validate_sweeps(const ValidateArgs& args) {
  const Registry all = all_backends("reference.peer.*", args.host);
  require_known_backends(all.match("*"), args.backend);
  std::map<std::string, Registry> registries;  // by the globs, since those of a sweep may name peers too
  const auto on = [&](const Sweep& sweep) -> const Registry& {
    const std::string globs = sweep.backend + "," + args.backend;
    auto found = registries.find(globs);
    if (found == registries.end()) found = registries.emplace(globs, all_backends(globs, args.host)).first;
    return found->second;
  };
  RunOptions options = options_of(args);
  Driver driver = validate_driver();
  driver.prepare = [&](Sweep& sweep) {
    if (!args.host.empty()) sweep.backend += ",host.*";
  };
  driver.list = [&](const Sweep& sweep) { return list_sweep(sweep, on(sweep), options); };
  driver.run = [&](const Sweep& sweep, const Loop& loop, reports::Report& report) {
    options.config = sweep.path;
    options.loop = loop_of(args, loop);
    run_sweep(sweep, on(sweep), options, report);
  };
  if (args.shrink) driver.amend = [&](reports::Report& report) { shrink_failures(args, all, report); };
  return drive(args, driver);
}

GivenCase case_of(const Safetensors& file, const ValidateArgs& args, const Settings& settings) {
  try {
    return case_from_tensors(file, args.op, settings);
  } catch (const Error& e) {
    fail(as_given(args, args.tensors + ": " + e.what()));
  }
}

int validate_tensors(const ValidateArgs& args) {
  if (!args.configs.empty() || !args.cases.empty()) fail("--tensors: expected no CONFIG and no --case beside it");
  if (args.op.empty()) fail("--tensors: expected --op OP beside it");
  for (const auto& [flag, value] : {std::pair{"--seed", &args.seed}, {"--shard", &args.shard}})
    if (!value->empty()) fail(flag, ": expected none beside --tensors, which are one case that no seed draws");
  const Settings settings = settings_of(args);
  const Safetensors file = read_safetensors(args.tensors);
  GivenCase given = case_of(file, args, settings);
  const std::string staging = args.staging.empty() ? default_staging(given.test.problem.io) : args.staging;
  if (const auto& s = reference::staging(staging); s.op != args.op)
    fail("--staging: expected one of op ", args.op, ", got ", staging, " of op ", s.op);

  Sweep sweep{args.tensors, args.tensors, "*", {}};
  sweep.cases.emplace_back().test = given.test;
  sweep.cases[0].name = fs::path(args.tensors).filename().string();
  sweep.cases[0].checks = {kDefaultCheck};
  const Registry registry = all_backends(args.backend, args.host);
  std::vector<const Backend*> known = registry.match("*");
  std::vector<Sweep> sweeps{sweep};  // of the backends that are built, then of what is in the file
  Registry in_file;
  if (!given.outputs.empty()) {
    if (!find(given.outputs, "final_state")) sweep.cases[0].test.problem.final_state = Switch::off;
    in_file.add(file_backend(std::move(given.outputs), staging));
    known.push_back(&in_file.get("file"));
    const auto& asked = args.checks;  // a file can only answer for accuracy: the others need runs of their own
    if (asked.empty() || std::find(asked.begin(), asked.end(), kDefaultCheck) != asked.end()) sweeps.push_back(sweep);
  }
  require_known_backends(known, args.backend);
  const auto on = [&](const Sweep& one) -> const Registry& { return &one == &sweeps[0] ? registry : in_file; };
  const auto options_on = [&](const Sweep& one, const Loop& loop) {
    RunOptions options = options_of(args);
    options.config = args.tensors;
    if (&one != &sweeps[0]) options.checks = {kDefaultCheck};
    options.loop = loop_of(args, loop);
    return options;
  };
  Driver driver = validate_driver();
  driver.list = [&](const Sweep& one) { return list_sweep(one, on(one), options_on(one, {})); };
  driver.run = [&](const Sweep& one, const Loop& loop, reports::Report& report) {
    run_on_inputs(one.cases[0], given.inputs, on(one), options_on(one, loop), report);
  };
  driver.also_read = {args.tensors};
  return drive(args, driver, sweeps, {{args.tensors, file.sha256}});
}

}  // namespace

int validate(const ValidateArgs& args) {
  require_known_checks("--check", args.checks);
  if (args.shrink && args.list) fail("--list: expected no --shrink beside it, nothing is run");
  if (args.shrink && !args.tensors.empty()) fail("--shrink: expected none beside --tensors, which no case id draws");
  if (!args.tensors.empty()) return validate_tensors(args);
  if (!args.op.empty() || !args.staging.empty()) fail("--op and --staging: expected --tensors FILE beside them");
  if (args.configs.empty() && args.cases.empty()) fail("validate: expected CONFIG..., --case ID or --tensors FILE");
  return validate_sweeps(args);
}

}  // namespace deltagauge::validate::cli
