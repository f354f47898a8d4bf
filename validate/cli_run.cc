#include "validate/cli_run.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "reports/build_info.h"
#include "reports/compare/merge.h"
#include "reports/file.h"
#include "reports/json.h"
#include "reports/sha256.h"
#include "validate/checks/check.h"
#include "validate/cli_output.h"
#include "validate/run.h"

namespace deltagauge::validate::cli {
namespace {

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

// Names that --set takes beside those of an id.
constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {{"lengths", "len"}};

std::string axis_named(const std::string& name) {
  for (const auto& [longer, axis] : kLongNames)
    if (longer == name) return std::string(axis);
  return name;
}

}  // namespace

Settings settings_of(const RunArgs& args) {
  Settings settings;
  for (const std::string& text : args.settings) {
    const auto eq = text.find('=');
    if (eq == 0 || eq == std::string::npos) fail("--set: expected AXIS=VALUE, got '", text, "'");
    settings.emplace_back(axis_named(text.substr(0, eq)), text.substr(eq + 1));
  }
  if (!args.seed.empty()) settings.emplace_back("seed", args.seed);
  return settings;
}

void require_known_checks(const std::string& where, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::string known;
    for (const CheckInfo& check : checks()) known += " " + std::string(check.name);
    if (std::none_of(checks().begin(), checks().end(),
                     [&](const CheckInfo& check) { return names_check(name, check.name); }))
      fail(where, ": expected one of", known, ", got '", name, "'");
  }
}

std::vector<Sweep> sweeps_of(const RunArgs& args, std::vector<reports::ConfigFile>& files) {
  std::vector<Sweep> sweeps;
  for (const std::string& path : args.configs) {
    const std::string text = reports::read_file(path);
    sweeps.push_back(parse_sweep(text, path, [](const std::string& name) { require_known_checks("check", {name}); }));
    files.push_back({path, reports::sha256(text)});
  }
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
    for (const auto& [axis, text] : settings_of(args)) try {
        override_axis(sweep, axis, text);
      } catch (const Error& e) {
        fail("--set ", axis, "=", text, ": ", e.what());
      }
  keep_shard(sweeps, args.shard);
  return sweeps;
}

reports::Report new_report(const RunArgs& args, std::vector<reports::ConfigFile> files) {
  reports::Report report;
  report.tool = reports::this_tool();
  report.host = reports::this_host();
  report.device = current_device();
  report.started = reports::utc_now();
  report.argv = args.argv;
  report.configs = std::move(files);
  return report;
}

Earlier::Earlier(const std::string& file, const reports::Report& now) {
  if (file.empty()) return;
  reports::Report report = reports::load_report(file);
  reports::compare::require_same_run("--resume " + file, now, report);
  for (reports::Result& row : report.results)
    if (row.outcome != reports::Outcome::skip)  // asking again costs nothing, and there may be a reason less
      rows_.emplace(JobName{row.test, row.backend, row.check}, std::move(row));
}

const reports::Result* Earlier::find(const JobName& job) const {
  const auto found = rows_.find(job);
  return found == rows_.end() ? nullptr : &found->second;
}

std::vector<std::string> json_files(const Outputs& outputs) {
  std::vector<std::string> files;
  if (!outputs.json.empty() && outputs.json != "-") files.push_back(outputs.json);
  if (!outputs.folder.empty()) files.push_back((std::filesystem::path(outputs.folder) / "report.json").string());
  return files;
}

bool writes_trace(const Outputs& outputs) { return !outputs.trace.empty() || !outputs.folder.empty(); }

int drive(const RunArgs& args, const Driver& driver) {
  if (args.configs.empty() && args.cases.empty()) fail(driver.name, ": expected CONFIG... or --case ID");
  if (const std::string asked = outputs_asked(args.outputs); args.list && !asked.empty())
    fail("--list: expected no ", asked, " beside it, nothing is run");
  std::vector<reports::ConfigFile> files;
  const std::vector<Sweep> sweeps = sweeps_of(args, files);
  std::size_t total = 0;
  for (const Sweep& sweep : sweeps) {
    const auto lines = driver.list(sweep);
    total += lines.size();
    if (args.list)
      for (const std::string& line : lines) std::cout << line << "\n";
  }
  if (args.list) return total ? 0 : 3;

  require_writable_outputs(args, driver.also_read);
  reports::Report report = new_report(args, std::move(files));
  Progress progress(total);
  Driver::Progress step;
  if (!args.quiet) step = [&](const reports::Result& row) { progress.step(row); };
  for (const Sweep& sweep : sweeps) driver.run(sweep, step, report);
  progress.clear();
  write_outputs(args, report);
  if (report.results.empty()) std::cerr << "deltagauge: no case and backend match\n";
  return driver.finish(report, args.outputs.json == "-" ? std::cerr : std::cout);
}

}  // namespace deltagauge::validate::cli
