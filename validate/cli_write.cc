// The outputs of a run: a table of flags, file names in --report DIR, and writers.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>

#include "core/error.h"
#include "reports/file.h"
#include "reports/formats/formats.h"
#include "reports/html/html.h"
#include "reports/json.h"
#include "reports/table.h"
#include "reports/trace/from_report.h"
#include "reports/trace/write.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/thresholds.h"

namespace deltagauge::validate::cli {
namespace {

namespace fs = std::filesystem;
using reports::Report;

struct Format {
  const char* flag;
  const char* in_folder;  // its name in --report DIR; null: only when asked for by its flag
  std::string Outputs::*path;
  std::string (*text)(const Report&);
};
constexpr Format kFormats[] = {
    {"--json", "report.json", &Outputs::json, reports::to_json},
    {"--junit", "junit.xml", &Outputs::junit, reports::to_junit},
    {"--html", "report.html", &Outputs::html, [](const Report& r) { return reports::html::to_html(r, kRowRatio); }},
    {"--sarif", "report.sarif", &Outputs::sarif, reports::to_sarif},
    {"--openmetrics", "metrics.txt", &Outputs::openmetrics, reports::to_openmetrics},
    {"--csv", nullptr, &Outputs::csv, reports::to_csv},
    {"--markdown", nullptr, &Outputs::markdown, reports::to_markdown},
    {"--gbench", nullptr, &Outputs::gbench, [](const Report& r) { return reports::to_gbench(r, r.started); }},
    {"--bencher", nullptr, &Outputs::bencher, reports::to_bencher},
};

void append_github_summary(const Report& report) {
  if (const char* path = std::getenv("GITHUB_STEP_SUMMARY"); path && *path)
    reports::append_file(path, reports::to_github_summary(report));
}

// Every file that a run leaves, or keeps beside its JSON report meanwhile.
std::vector<reports::Output> files_of(const Outputs& to) {
  std::vector<reports::Output> files;
  const auto in_folder = [&](const char* name) { files.push_back({"--report", (fs::path(to.folder) / name).string()}); };
  for (const Format& format : kFormats) {
    if (const std::string& path = to.*format.path; !path.empty() && path != "-") files.push_back({format.flag, path});
    if (!to.folder.empty() && format.in_folder) in_folder(format.in_folder);
  }
  if (!to.trace.empty()) files.push_back({"--trace", to.trace});
  if (!to.folder.empty())
    for (const char* name : {"trace.pftrace", "table.txt"}) in_folder(name);
  for (const std::string& json : json_files(to)) files.push_back({"the report so far", json + ".partial"});
  return files;
}

}  // namespace

std::string outputs_asked(const Outputs& outputs) {
  std::string flags;
  const auto add = [&](const char* flag, const std::string& path) {
    if (!path.empty()) flags += (flags.empty() ? "" : ", ") + std::string(flag);
  };
  add("--report", outputs.folder);
  for (const Format& format : kFormats) add(format.flag, outputs.*format.path);
  add("--trace", outputs.trace);
  return flags;
}

void require_writable_outputs(const RunArgs& args, const std::vector<std::string>& also_read) {
  const Outputs& to = args.outputs;
  std::vector<std::string> read = args.configs;
  read.insert(read.end(), also_read.begin(), also_read.end());
  const auto files = files_of(to);
  const auto jsons = json_files(to);
  reports::require_apart(files, read);
  if (!args.resume.empty()) {  // which the report alone may replace, finished or so far
    std::vector<reports::Output> others;
    for (const reports::Output& file : files)
      if (std::none_of(jsons.begin(), jsons.end(),
                       [&](const std::string& json) { return file.path == json || file.path == json + ".partial"; }))
        others.push_back(file);
    reports::require_apart(others, {args.resume});
  }
  if (!to.folder.empty()) reports::require_writable_directory(to.folder);
  for (const Format& format : kFormats) {
    const std::string& path = to.*format.path;
    if (path.empty() || (path == "-" && format.path == &Outputs::json)) continue;
    if (path == "-") fail(format.flag, ": expected a file, got -, which only --json takes");
    reports::require_writable_file(path);
  }
  if (!to.trace.empty()) {
    reports::trace::require_trace_path(to.trace);
    reports::require_writable_file(to.trace);
  }
}

void require_writable_output(const std::string& flag, const std::string& path, const std::vector<std::string>& read) {
  if (path.empty() || (path == "-" && flag == "--json")) return;
  if (path == "-") fail(flag, ": expected a file, got -, which only --json takes");
  reports::require_apart({{flag, path}}, read);
  reports::require_writable_file(path);
}

void write_trace_file(const Report& report, const std::string& path) {
  reports::trace::write_trace(reports::trace::trace_of(report), path);
}

void write_outputs(const RunArgs& args, const Report& report) {
  const Outputs& to = args.outputs;
  std::string in_folder;
  for (const Format& format : kFormats) {
    const std::string& path = to.*format.path;
    if (!path.empty() && path != "-") reports::write_file(path, format.text(report));
    if (to.folder.empty() || !format.in_folder) continue;
    reports::write_file((fs::path(to.folder) / format.in_folder).string(), format.text(report));
    in_folder += std::string(format.in_folder) + " ";
  }
  if (!to.trace.empty()) write_trace_file(report, to.trace);
  if (!to.folder.empty()) {
    const fs::path folder = to.folder;
    reports::write_file((folder / "table.txt").string(), reports::table(report, {}));
    write_trace_file(report, (folder / "trace.pftrace").string());
    if (!args.quiet) std::cerr << "deltagauge: wrote " << in_folder << "trace.pftrace table.txt to " << to.folder << "\n";
  }
  if (to.github) append_github_summary(report);
  if (to.json == "-") {
    std::cout << reports::to_json(report);
    return;
  }
  if (to.github) std::cout << reports::to_github_annotations(report);
  reports::TableStyle style = stdout_style();
  if (args.quiet) style.rows = reports::Rows::failures;
  std::cout << reports::table(report, style);
}

}  // namespace deltagauge::validate::cli
