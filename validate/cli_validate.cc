// deltagauge validate: sweeps, single cases or given tensors through the judging loop, then the report.
#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "core/sweep.h"
#include "reference/staging.h"
#include "reports/build_info.h"
#include "reports/file.h"
#include "reports/json.h"
#include "reports/sha256.h"
#include "validate/cli.h"
#include "validate/cli_output.h"
#include "validate/run.h"
#include "validate/tensors.h"

namespace deltagauge::validate::cli {
namespace {

namespace fs = std::filesystem;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr const char* kDefaultCheck = "accuracy";  // of cases that no config asks a check for

Settings settings_of(const ValidateArgs& args) {
  Settings settings;
  for (const std::string& text : args.settings) {
    const auto eq = text.find('=');
    if (eq == 0 || eq == std::string::npos) fail("--set: expected AXIS=VALUE, got '", text, "'");
    settings.emplace_back(text.substr(0, eq), text.substr(eq + 1));
  }
  if (!args.seed.empty()) settings.emplace_back("seed", args.seed);
  return settings;
}

void require_known_checks(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::string known;
    for (const CheckInfo& check : checks()) known += " " + std::string(check.name);
    if (std::none_of(checks().begin(), checks().end(), [&](const CheckInfo& check) { return check.name == name; }))
      fail("--check: expected one of", known, ", got '", name, "'");
  }
}

// Outputs are opened for writing before the run, so that a long run is not lost to a wrong path.
void require_writable_outputs(const ValidateArgs& args) {
  if (!args.report_folder.empty()) reports::require_writable_directory(args.report_folder);
  if (args.json.empty() || args.json == "-") return;
  const fs::path parent = fs::path(args.json).parent_path();
  reports::require_writable_directory(parent.empty() ? "." : parent.string());
  if (fs::is_directory(args.json)) fail("--json: expected a file, got the directory ", args.json);
}

// Keeps cases I, I + N, I + 2N, ... (from 1), counted over all sweeps.
void keep_shard(std::vector<Sweep>& sweeps, const std::string& shard) {
  if (shard.empty()) return;
  std::size_t part = 0, parts = 0;
  const char *at = shard.data(), *end = at + shard.size();
  const auto first = std::from_chars(at, end, part);
  bool ok = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  if (ok) {
    const auto second = std::from_chars(first.ptr + 1, end, parts);
    ok = second.ec == std::errc() && second.ptr == end && part >= 1 && part <= parts;
  }
  if (!ok) fail("--shard: expected I/N with 1 <= I <= N, got '", shard, "'");
  std::size_t i = 0;
  for (Sweep& sweep : sweeps) std::erase_if(sweep.cases, [&](const SweepCase&) { return i++ % parts != part - 1; });
}

std::vector<Sweep> sweeps_of(const ValidateArgs& args) {
  std::vector<Sweep> sweeps;
  for (const std::string& path : args.configs) sweeps.push_back(load_sweep(path));
  if (!args.cases.empty()) {
    Sweep single{"", "--case", "*", {}};
    for (const std::string& id : args.cases) {
      SweepCase& one = single.cases.emplace_back();
      one.test = parse_id(id);
      one.checks = {kDefaultCheck};
    }
    sweeps.push_back(std::move(single));
  }
  for (Sweep& sweep : sweeps)
    for (const auto& [axis, text] : settings_of(args)) override_axis(sweep, axis, text);
  keep_shard(sweeps, args.shard);
  return sweeps;
}

RunOptions options_of(const ValidateArgs& args) {
  RunOptions options;
  options.oracle = oracle::parse_precision(args.oracle);
  options.checks = args.checks;
  options.backend = args.backend;
  options.filter = args.filter;
  options.cuda_missing_is_failure = args.require_gpu;
  return options;
}

// One thing to run: a sweep on a registry, with inputs drawn or given.
struct Part {
  const Sweep* sweep;
  const Registry* registry;
  RunOptions options;
  const Tensors* inputs = nullptr;  // null: drawn
};

int list_parts(const std::vector<Part>& parts) {
  bool any = false;
  for (const Part& part : parts)
    for (const std::string& line : list_sweep(*part.sweep, *part.registry, part.options)) {
      std::cout << line << "\n";
      any = true;
    }
  return any ? 0 : 3;
}

void run_parts(std::vector<Part>& parts, bool quiet, reports::Report& report) {
  std::size_t total = 0;
  for (const Part& part : parts) total += list_sweep(*part.sweep, *part.registry, part.options).size();
  Progress progress(total);
  for (Part& part : parts) {
    if (!quiet) part.options.progress = [&](std::size_t, std::size_t, const reports::Result& r) { progress.step(r); };
    if (part.inputs)
      run_on_inputs(part.sweep->cases[0], *part.inputs, *part.registry, part.options, report);
    else
      run_sweep(*part.sweep, *part.registry, part.options, report);
  }
  progress.clear();
}

// What a repro line needs beside the source of its case. An id holds the settings already.
void complete_repros(const ValidateArgs& args, reports::Report& report) {
  for (reports::Result& result : report.results) {
    if (result.repro.empty()) continue;
    if (result.repro.find(" --case ") == std::string::npos) {
      for (const std::string& text : args.settings) result.repro += " --set '" + text + "'";
      if (!args.seed.empty()) result.repro += " --seed " + args.seed;
    }
    if (!args.staging.empty()) result.repro += " --staging " + args.staging;
    if (args.oracle != "auto") result.repro += " --oracle " + args.oracle;
    if (args.require_gpu) result.repro += " --require-gpu";
  }
}

void write_report(const ValidateArgs& args, const reports::Report& report) {
  const std::string json = reports::to_json(report);
  if (!args.report_folder.empty()) {
    const fs::path folder = args.report_folder;
    reports::write_file((folder / "report.json").string(), json);
    reports::write_file((folder / "table.txt").string(), reports::table(report, {}));
    if (!args.quiet) std::cerr << "deltagauge: wrote report.json and table.txt to " << args.report_folder << "\n";
  }
  if (args.json == "-") {
    std::cout << json;
    return;
  }
  if (!args.json.empty()) reports::write_file(args.json, json);
  reports::TableStyle style = stdout_style();
  if (args.quiet) style.rows = reports::Rows::failures;
  std::cout << reports::table(report, style);
}

int run_and_report(const ValidateArgs& args, std::vector<Part> parts) {
  if (args.list) return list_parts(parts);
  require_writable_outputs(args);
  reports::Report report;
  report.tool = reports::this_tool();
  report.host = reports::this_host();
  report.device = current_device();
  report.argv = args.argv;
  for (const std::string& path : args.configs) report.configs.push_back({path, reports::sha256(reports::read_file(path))});
  if (!args.tensors.empty()) report.configs.push_back({args.tensors, reports::sha256(reports::read_file(args.tensors))});
  run_parts(parts, args.quiet, report);
  complete_repros(args, report);
  write_report(args, report);
  if (report.results.empty()) std::cerr << "deltagauge: no case and backend match\n";
  return report.exit_status();
}

int validate_sweeps(const ValidateArgs& args) {
  const Registry registry = all_backends();
  require_known_backends(registry.match("*"), args.backend);
  const std::vector<Sweep> sweeps = sweeps_of(args);
  std::vector<Part> parts;
  for (const Sweep& sweep : sweeps) {
    parts.push_back({&sweep, &registry, options_of(args)});
    parts.back().options.config = sweep.path;
  }
  return run_and_report(args, std::move(parts));
}

int validate_tensors(const ValidateArgs& args) {
  if (!args.configs.empty() || !args.cases.empty()) fail("--tensors: expected no CONFIG and no --case beside it");
  if (args.op.empty()) fail("--tensors: expected --op OP beside it");
  const Settings settings = settings_of(args);
  GivenCase given = case_from_tensors(read_safetensors(args.tensors), args.op, settings);
  const std::string staging = args.staging.empty() ? default_staging(given.test.problem.io) : args.staging;
  if (const auto& s = reference::staging(staging); s.op != args.op)
    fail("--staging: expected one of op ", args.op, ", got ", staging, " of op ", s.op);

  Sweep sweep{args.tensors, args.tensors, "*", {}};
  sweep.cases.emplace_back().test = given.test;
  sweep.cases[0].name = fs::path(args.tensors).filename().string();
  sweep.cases[0].checks = {kDefaultCheck};
  RunOptions options = options_of(args);
  options.config = args.tensors;
  const Registry registry = all_backends();
  std::vector<Part> parts{{&sweep, &registry, options, &given.inputs}};

  Registry in_file;
  Sweep file_sweep = sweep;
  std::vector<const Backend*> known = registry.match("*");
  if (!given.outputs.empty()) {
    if (!find(given.outputs, "final_state")) file_sweep.cases[0].test.problem.final_state = Switch::off;
    in_file.add(file_backend(std::move(given.outputs), staging));
    known.push_back(&in_file.get("file"));
    const auto& asked = args.checks;  // a file can only answer for accuracy: the others need runs of their own
    if (asked.empty() || std::find(asked.begin(), asked.end(), kDefaultCheck) != asked.end()) {
      options.checks = {kDefaultCheck};
      parts.push_back({&file_sweep, &in_file, options, &given.inputs});
    }
  }
  require_known_backends(known, args.backend);
  return run_and_report(args, std::move(parts));
}

}  // namespace

int validate(const ValidateArgs& args) {
  require_known_checks(args.checks);
  if (!args.tensors.empty()) return validate_tensors(args);
  if (!args.op.empty() || !args.staging.empty()) fail("--op and --staging: expected --tensors FILE beside them");
  if (args.configs.empty() && args.cases.empty()) fail("validate: expected CONFIG..., --case ID or --tensors FILE");
  return validate_sweeps(args);
}

}  // namespace deltagauge::validate::cli
