// deltagauge validate: sweeps, single cases or given tensors through the judging loop, then the report.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <utility>

#include "core/error.h"
#include "core/sweep.h"
#include "reference/staging.h"
#include "validate/cli.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/cli_shrink.h"
#include "validate/isolate.h"
#include "validate/partial.h"
#include "validate/run.h"
#include "validate/tensors.h"

namespace deltagauge::validate::cli {
namespace {

namespace fs = std::filesystem;

bool apart(const ValidateArgs& args) { return args.isolate || args.timeout > 0; }

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
  if (!args.host.empty()) options.repro_flags += " --host " + shell_quoted(args.host);
  if (!args.staging.empty()) options.repro_flags += " --staging " + args.staging;
  if (args.oracle != "auto") options.repro_flags += " --oracle " + args.oracle;
  if (args.require_gpu) options.repro_flags += " --require-gpu";
  if (args.timeout > 0) options.repro_flags += fmt::format(" --timeout {}", args.timeout);
  if (args.isolate) options.repro_flags += " --isolate";
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

std::size_t count_jobs(const Part& part) { return list_sweep(*part.sweep, *part.registry, part.options).size(); }

void run_part(const Part& part, reports::Report& report) {
  if (part.inputs)
    run_on_inputs(part.sweep->cases[0], *part.inputs, *part.registry, part.options, report);
  else
    run_sweep(*part.sweep, *part.registry, part.options, report);
}

// The jobs of a worker's task, each row sent as soon as there is one.
int work(const std::string& word, std::vector<Part>& parts) {
  const WorkerTask task = worker_task(word);
  std::size_t first = 0;
  for (Part& part : parts) {
    const std::size_t end = first + count_jobs(part);
    for (const std::size_t number : task.numbers)
      if (number >= first && number < end) part.options.only.push_back(number);
    part.options.first = std::exchange(first, end);
    part.options.progress = [&](std::size_t, std::size_t, const reports::Result& row) { send_row(task, row); };
    reports::Report report;
    if (!part.options.only.empty()) run_part(part, report);
  }
  return 0;
}

// The argv of a worker: this run's, and its task right behind the subcommand.
WorkerCommand worker_command(std::vector<std::string> argv) {
  return [argv = std::move(argv)](const std::string& task) {
    std::vector<std::string> words = argv;
    words.insert(words.begin() + 2, {"--worker", task});
    return words;
  };
}

// False when an interrupt ended it before its last job.
bool run_parts(const ValidateArgs& args, std::vector<Part>& parts, const Earlier& earlier, reports::Report& report) {
  std::size_t total = 0;
  for (Part& part : parts) part.options.first = std::exchange(total, total + count_jobs(part));
  PartialReport partial(json_files(args.outputs));
  const Interrupts interrupts;
  Workers workers(worker_command(args.argv), args.timeout);
  Progress progress(total);
  for (Part& part : parts) {
    if (apart(args)) part.options.workers = &workers;
    part.options.stopped = Interrupts::asked;
    if (!args.resume.empty()) part.options.known = [&](const JobName& job) { return earlier.find(job); };
    part.options.progress = [&](std::size_t, std::size_t, const reports::Result& row) {
      if (!args.quiet) progress.step(row);
      if (!earlier.find({row.test, row.backend, row.check})) partial.update(report);
    };
    run_part(part, report);
  }
  progress.clear();
  if (args.shrink) shrink_failures(args, parts[0].options, *parts[0].registry, report);
  write_outputs(args, report);
  partial.remove();
  const std::size_t left = total - report.results.size();
  if (left) std::cerr << "deltagauge: interrupted, " << left << " of " << total << " jobs left; --resume goes on\n";
  return left == 0;
}

int run_and_report(const ValidateArgs& args, std::vector<Part> parts, std::vector<reports::ConfigFile> files) {
  if (args.list) return list_parts(parts);
  if (!args.worker.empty()) return work(args.worker, parts);
  require_writable_outputs(args);
  reports::Report report = new_report(args, std::move(files));
  const Earlier earlier(args.resume, report);
  const bool whole = run_parts(args, parts, earlier, report);
  if (!whole) return 2;
  if (report.results.empty()) std::cerr << "deltagauge: no case and backend match\n";
  return report.exit_status();
}

int validate_sweeps(const ValidateArgs& args) {
  const Registry registry = all_backends(args.host);
  require_known_backends(registry.match("*"), args.backend);
  std::vector<reports::ConfigFile> files;
  std::vector<Sweep> sweeps = sweeps_of(args, files);
  if (!args.host.empty())
    for (Sweep& sweep : sweeps) sweep.backend += ",host.*";
  std::vector<Part> parts;
  for (const Sweep& sweep : sweeps) {
    parts.push_back({&sweep, &registry, options_of(args)});
    parts.back().options.config = sweep.path;
  }
  return run_and_report(args, std::move(parts), std::move(files));
}

GivenCase case_of(const Safetensors& file, const ValidateArgs& args, const Settings& settings) {
  try {
    return case_from_tensors(file, args.op, settings);
  } catch (const Error& e) {
    fail(args.tensors, ": ", e.what());
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
  RunOptions options = options_of(args);
  options.config = args.tensors;
  const Registry registry = all_backends(args.host);
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
  return run_and_report(args, std::move(parts), {{args.tensors, file.sha256}});
}

}  // namespace

int validate(const ValidateArgs& args) {
  require_known_checks("--check", args.checks);
  if (args.list && (!outputs_asked(args.outputs).empty() || !args.resume.empty() || apart(args) || args.shrink))
    fail("--list: expected no output, --resume, --isolate, --timeout or --shrink beside it, nothing is run");
  if (args.shrink && !args.tensors.empty()) fail("--shrink: expected none beside --tensors, which no case id draws");
  for (const std::string& path : args.configs)
    if (apart(args) && args.worker.empty() && fs::exists(path) && !fs::is_regular_file(path))
      fail(path, ": expected a file beside --isolate or --timeout, since every process reads it again");
  if (!args.tensors.empty()) return validate_tensors(args);
  if (!args.op.empty() || !args.staging.empty()) fail("--op and --staging: expected --tensors FILE beside them");
  if (args.configs.empty() && args.cases.empty()) fail("validate: expected CONFIG..., --case ID or --tensors FILE");
  return validate_sweeps(args);
}

}  // namespace deltagauge::validate::cli
