// deltagauge report: reports as text, in other forms, compared, joined, and their history.
#include <algorithm>
#include <iostream>

#include "core/error.h"
#include "reports/accuracy_table.h"
#include "reports/compare/compare.h"
#include "reports/compare/history.h"
#include "reports/compare/merge.h"
#include "reports/file.h"
#include "reports/html/html.h"
#include "reports/json.h"
#include "reports/trace/write.h"
#include "validate/cli.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/thresholds.h"

namespace deltagauge::validate::cli {
namespace {

namespace compare = reports::compare;

std::vector<reports::Report> load(const std::vector<std::string>& files) {
  std::vector<reports::Report> all;
  for (const std::string& file : files) all.push_back(reports::load_report(file));
  return all;
}

void write_text(const std::string& path, const std::string& text) {
  if (path == "-")
    std::cout << text;
  else
    reports::write_file(path, text);
}

// Every series of a history with the places where its level changed.
struct Course {
  compare::Series series;
  std::vector<compare::ChangePoint> changes;
};
std::vector<Course> courses(const std::string& path) {
  std::vector<Course> all;
  for (compare::Series& series : compare::series(compare::load(path))) {
    std::vector<double> times;
    for (const compare::Point& point : series.points) times.push_back(point.time);
    auto changes = compare::change_points(times);
    all.push_back({std::move(series), std::move(changes)});
  }
  return all;
}

std::vector<reports::html::HistoryPoint> history_points(const std::string& path) {
  std::vector<reports::html::HistoryPoint> points;
  for (const Course& course : courses(path))
    for (std::size_t i = 0; i < course.series.points.size(); ++i) {
      const compare::Point& p = course.series.points[i];
      const bool changed =
          std::any_of(course.changes.begin(), course.changes.end(), [&](const auto& c) { return c.at == i; });
      points.push_back(
          {p.commit, p.date, course.series.test + "/" + course.series.backend + "/" + course.series.check, p.time, changed});
    }
  return points;
}

}  // namespace

int report_show(const ReportArgs& args) {
  const auto all = load(args.files);
  if (args.accuracy) {
    std::cout << reports::accuracy_table(all);
    std::int64_t left = 0;
    for (const auto& report : all) left += report.jobs_left;
    if (left) std::cerr << "deltagauge: unfinished, " << left << " jobs left\n";
    return left ? 2 : 0;
  }
  int status = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all.size() > 1) std::cout << (i ? "\n" : "") << args.files[i] << "\n";
    std::cout << reports::table(all[i], stdout_style());
    // Of several reports the gravest counts: 1 before 2 before 3 before 0.
    if (const int one = all[i].exit_status()) status = status ? std::min(status, one) : one;
  }
  return status;
}

int report_convert(const ReportArgs& args) {
  RunArgs to;
  to.outputs = args.outputs;
  require_writable_outputs(to, args.files);
  write_outputs(to, reports::load_report(args.files[0]));
  return 0;
}

int report_diff(const ReportArgs& args) {
  std::vector<std::string> base = args.more_base, fresh = args.more_fresh;
  base.insert(base.begin(), args.files[0]);
  fresh.insert(fresh.begin(), args.files[1]);
  std::vector<std::string> read = base;
  read.insert(read.end(), fresh.begin(), fresh.end());
  require_writable_output("--json", args.outputs.json, read);
  compare::CompareOptions options;
  options.across_devices = args.across_devices;
  options.bits = args.bits;
  options.allow_missing = args.allow_missing;
  const auto all_base = load(base), all_fresh = load(fresh);
  if (!args.allow_missing) {
    require_finished(base, all_base);
    require_finished(fresh, all_fresh);
  }
  const auto comparison = compare::compare(all_base, all_fresh, options);
  if (!args.outputs.json.empty()) write_text(args.outputs.json, compare::to_json(comparison));
  if (args.outputs.json != "-") std::cout << compare::text(comparison, stdout_style().width);
  return comparison.exit_status();
}

int report_merge(const ReportArgs& args) {
  require_writable_output("--json", args.outputs.json, args.files);
  const reports::Report whole = compare::merge(load(args.files), args.files);
  write_text(args.outputs.json, reports::to_json(whole));
  return whole.exit_status();
}

int report_html(const ReportArgs& args) {
  require_writable_output("--out", args.outputs.html, {args.files[0], args.history});
  const auto report = reports::load_report(args.files[0]);
  const auto history = args.history.empty() ? std::vector<reports::html::HistoryPoint>{} : history_points(args.history);
  reports::write_file(args.outputs.html, reports::html::to_html(report, kRowRatio, history));
  return 0;
}

int report_trace(const ReportArgs& args) {
  reports::trace::require_trace_path(args.outputs.trace);
  require_writable_output("--out", args.outputs.trace, args.files);
  write_trace_file(reports::load_report(args.files[0]), args.outputs.trace);
  return 0;
}

int report_history(const ReportArgs& args) {
  if (!args.files.empty()) require_writable_output("FILE", args.history, args.files);
  for (const std::string& file : args.files) {
    const auto report = reports::load_report(file);
    if (report.started.empty()) fail(file, ": expected a report that says when it was started, got one that does not");
    compare::append(args.history, report, report.started);
  }
  Listing listing{{"device", "case", "backend", "check", "commits", "latest_us", "changed_at", "ratio"}, {}};
  for (const Course& course : courses(args.history)) {
    const auto& s = course.series;
    const auto add = [&](const std::string& at, const std::string& ratio) {
      listing.rows.push_back({s.device, s.test, s.backend, s.check, std::to_string(s.points.size()),
                              std::to_string(1e6 * s.points.back().time), at, ratio});
    };
    if (course.changes.empty()) add("", "");
    for (const auto& change : course.changes) add(s.points[change.at].commit, std::to_string(change.ratio));
  }
  std::cout << as_text(listing);
  return 0;
}

}  // namespace deltagauge::validate::cli
