#include "validate/cli_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>

#include "core/error.h"
#include "reports/build_info.h"
#include "reports/file.h"
#include "reports/sha256.h"
#include "validate/checks/check.h"
#include "validate/run.h"

namespace deltagauge::validate::cli {
namespace {

std::optional<reports::Shard> shard_of(const RunArgs& args) {
  if (args.shard.empty()) return std::nullopt;
  reports::Shard shard;
  const char *at = args.shard.data(), *end = at + args.shard.size();
  const auto first = std::from_chars(at, end, shard.part);
  bool ok = first.ec == std::errc() && first.ptr != end && *first.ptr == '/';
  if (ok) {
    const auto second = std::from_chars(first.ptr + 1, end, shard.parts);
    ok = second.ec == std::errc() && second.ptr == end && shard.part >= 1 && shard.part <= shard.parts;
  }
  if (!ok) fail("--shard: expected I/N with 1 <= I <= N, got '", args.shard, "'");
  return shard;
}

// Keeps cases I, I + N, I + 2N, ... (from 1), counted over all sweeps.
void keep_shard(std::vector<Sweep>& sweeps, const reports::Shard& shard) {
  std::int64_t i = 0;
  for (Sweep& sweep : sweeps)
    std::erase_if(sweep.cases, [&](const SweepCase&) { return i++ % shard.parts != shard.part - 1; });
}

// Names that --set takes beside those of an id.
constexpr std::pair<std::string_view, std::string_view> kLongNames[] = {{"lengths", "len"}};

std::string axis_named(const std::string& name) {
  for (const auto& [longer, axis] : kLongNames)
    if (longer == name) return std::string(axis);
  return name;
}

// What an earlier case asks for already is dropped: the same id with the same checks and ceilings, on the same backends,
// under the same name or, as cases of --case are, under none.
void drop_repeated(std::vector<Sweep>& sweeps) {
  std::set<std::string> seen;
  for (Sweep& sweep : sweeps)
    std::erase_if(sweep.cases, [&](const SweepCase& one) {
      std::string key =
          fmt::format("{}\n{}\n{}\n{}\n", to_id(one.test), sweep.backend, one.expect, fmt::join(one.checks, ","));
      for (const Ceiling& c : one.ceilings) key += fmt::format("{} {} {} {}\n", c.tensor, c.metric, c.value, c.from);
      const bool again = !seen.insert(key + one.name).second;
      seen.insert(key);
      return again;
    });
}

}  // namespace

std::string as_given(const RunArgs& args, std::string message) {
  for (const auto& [longer, axis] : kLongNames) {
    const auto given = [&, name = longer](const std::string& text) { return text.starts_with(std::string(name) + "="); };
    if (std::ranges::none_of(args.settings, given)) continue;
    for (const auto& [before, after] : {std::pair{"--set ", "="}, {": ", ": "}}) {
      const std::string from = before + std::string(axis) + after;
      if (const auto at = message.find(from); at != std::string::npos)
        message.replace(at, from.size(), before + std::string(longer) + after);
    }
  }
  return message;
}

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

std::vector<Sweep> sweeps_of(const RunArgs& args, std::vector<reports::ConfigFile>& files,
                             const std::function<void(Sweep&)>& prepare) {
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
  for (Sweep& sweep : sweeps) {
    for (const auto& [axis, text] : settings_of(args)) try {
        override_axis(sweep, axis, text);
      } catch (const Error& e) {
        fail(as_given(args, "--set " + axis + "=" + text + ": " + e.what()));
      }
    if (prepare) prepare(sweep);
  }
  drop_repeated(sweeps);
  if (const auto shard = shard_of(args)) keep_shard(sweeps, *shard);
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
  report.shard = shard_of(args);
  return report;
}

std::vector<std::string> json_files(const Outputs& outputs) {
  std::vector<std::string> files;
  if (!outputs.json.empty() && outputs.json != "-") files.push_back(outputs.json);
  if (!outputs.folder.empty()) files.push_back((std::filesystem::path(outputs.folder) / "report.json").string());
  return files;
}

void require_finished(const std::vector<std::string>& files, const std::vector<reports::Report>& reports) {
  for (std::size_t i = 0; i < files.size(); ++i)
    if (reports[i].jobs_left > 0)
      fail(files[i], ": expected a finished report, got one with ", reports[i].jobs_left, " jobs left; --resume goes on");
}

bool writes_trace(const Outputs& outputs) { return !outputs.trace.empty() || !outputs.folder.empty(); }

}  // namespace deltagauge::validate::cli
