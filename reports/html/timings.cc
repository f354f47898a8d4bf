// Bench and replay rows: latency against total tokens, batch or the active fraction, the roofline floor beside it, and a
// table.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>

#include "core/error.h"
#include "core/problem.h"
#include "reports/html/sections.h"
#include "reports/html/text.h"

namespace deltagauge::reports::html {
namespace {

constexpr std::size_t kMostCharts = 8;

struct Row {
  const Result* result = nullptr;
  std::int64_t tokens = 0, batch = 0, length = 0;  // length: of each sequence, 0 where they differ
};

// A case id without the lengths, which are what a plot varies.
std::string shape_of(const std::string& id) {
  const std::size_t from = id.find("len=");
  if (from == std::string::npos) return id;
  const std::size_t to = id.find_first_of(",/", from);
  if (to == std::string::npos) return id.substr(0, from);
  return id.substr(0, from) + id.substr(id[to] == ',' ? to + 1 : to);
}

std::optional<Row> row_of(const Result& r) {
  try {
    const Problem p = parse_id(r.test).problem;
    const bool equal = std::all_of(p.lengths.begin(), p.lengths.end(), [&](auto n) { return n == p.lengths.front(); });
    return Row{&r, p.tokens(), p.sequences(), equal && !p.lengths.empty() ? p.lengths.front() : 0};
  } catch (const Error&) {
    return std::nullopt;  // another program's case: in the table only
  }
}

using Points = std::map<double, double>;
void raise(Points& points, double x, double seconds) {
  double& y = points[x];
  y = std::max(y, seconds * 1e6);
}

// A chart for every value of `apart`, with a line a backend and the floor. x_of and apart look at a Row.
template <class X, class Apart>
void add_charts(Page& page, const std::string& title, const Axis& axis, const std::vector<Row>& rows, X x_of, Apart apart) {
  struct Lines {
    std::map<std::string, Points> measured;  // by backend
    Points floor;
  };
  std::map<std::pair<std::int64_t, std::string>, Lines> charts;  // by apart: a number to sort by, and words
  for (const Row& row : rows) {
    const Timing& t = *row.result->timing;
    if (!(t.median > 0) || !std::isfinite(t.median)) continue;
    Lines& lines = charts[apart(row)];
    raise(lines.measured[row.result->backend], x_of(row), t.median);
    if (t.floor > 0 && std::isfinite(t.floor)) raise(lines.floor, x_of(row), t.floor);
  }
  std::erase_if(charts, [](const auto& entry) {
    const auto& measured = entry.second.measured;
    return std::none_of(measured.begin(), measured.end(), [](const auto& line) { return line.second.size() > 1; });
  });
  std::size_t added = 0;
  for (const auto& [key, lines] : charts) {
    if (added++ == kMostCharts) {
      page.body +=
          fmt::format("<p>The first {} of {} such plots; the table has all rows.</p>\n", kMostCharts, charts.size());
      return;
    }
    Chart chart{title + (key.second.empty() ? "" : ", " + key.second),
                "Where rows share a point, the slowest is drawn.",
                axis,
                {"median latency, \u00b5s", Scale::log10},
                {},
                {}};
    for (const auto& [backend, points] : lines.measured) chart.series.push_back({backend, {points.begin(), points.end()}});
    if (lines.floor.empty())
      chart.caption += " No roofline was measured in this run.";
    else
      chart.series.push_back({"roofline floor", {lines.floor.begin(), lines.floor.end()}, Mark::reference});
    page.add(chart);
  }
}

void add_group(Page& page, const std::vector<Row>& rows) {
  using Apart = std::pair<std::int64_t, std::string>;
  std::set<double> active;
  for (const Row& row : rows) active.insert(row.result->timing->active);
  if (active.size() > 1) {
    add_charts(
        page, "Latency against the active fraction", {"active fraction of the captured capacity"}, rows,
        [](const Row& r) { return r.result->timing->active; }, [](const Row&) { return Apart(); });
    return;
  }
  add_charts(
      page, "Latency against tokens", {"total tokens", Scale::log2}, rows,
      [](const Row& r) { return static_cast<double>(r.tokens); },
      [](const Row& r) { return Apart(r.batch, fmt::format("batch {}", r.batch)); });
  add_charts(
      page, "Latency against batch", {"sequences in the batch", Scale::log2}, rows,
      [](const Row& r) { return static_cast<double>(r.batch); },
      [](const Row& r) { return Apart(r.length, r.length ? fmt::format("length {}", r.length) : "ragged lengths"); });
}

std::string conditions(const Conditions& c) {
  std::string text;
  const auto add = [&](const std::optional<double>& x, const char* unit) {
    if (x) text += fmt::format("{}{} {}", text.empty() ? "" : ", ", number(*x), unit);
  };
  add(c.sm_mhz, "MHz"), add(c.memory_mhz, "MHz memory"), add(c.temperature_c, "\u00b0C"), add(c.power_w, "W");
  for (const std::string& reason : c.throttle) text += (text.empty() ? "" : ", ") + ("throttled: " + escape(reason));
  return text;
}

std::string data_table(const Report& report) {
  std::vector<std::vector<std::string>> rows;
  for (const Result& r : report.results) {
    if (!r.timing) continue;
    const Timing& t = *r.timing;
    rows.push_back({"<code>" + escape(r.test) + "</code>", escape(r.backend), escape(r.check), number(t.active),
                    microseconds(t.median), microseconds(t.p95), fmt::format("{:.3f}", t.tb_s()),
                    fmt::format("{:.2f}", t.tflop_s()), t.floor > 0 ? fmt::format("{:.1f}", t.roofline_percent()) : "",
                    t.floor > 0 ? fmt::format("{:.2f}", t.x_of_floor()) : "",
                    fmt::format("{} \u00d7 {}{}", t.samples.size(), t.calls, t.settled ? "" : ", not settled"),
                    conditions(t.conditions)});
  }
  return table_of("All timed rows",
                  {"Case", "Backend", "Check", "Active", "Median \u00b5s", "p95 \u00b5s", "TB/s", "TFLOP/s", "% of roofline",
                   "\u00d7 floor", "Samples \u00d7 calls", "Conditions"},
                  rows);
}

}  // namespace

void add_timings(Page& page, const Report& report) {
  std::map<std::pair<std::string, std::string>, std::vector<Row>> groups;  // by check and shape
  bool any = false;
  for (const Result& r : report.results) {
    if (!r.timing) continue;
    any = true;
    const std::string check = r.check.substr(0, r.check.rfind("-1/"));  // replay-time-1/16 is the replay-time of a part
    if (const auto row = row_of(r)) groups[{check, shape_of(r.test)}].push_back(*row);
  }
  if (!any) return;
  page.open("timings", "Times");
  if (const auto& r = report.roofline)
    page.body += fmt::format(
        "<p>Measured in this run: copy {} TB/s, dense bf16 tensor products {} TFLOP/s. The floor is the time "
        "that the op's least bytes or least operations take at these.</p>\n",
        number(r->copy_tb_s), number(r->tensor_tflop_s));
  for (const auto& [key, rows] : groups) {
    Page part;
    part.charts = std::move(page.charts);
    add_group(part, rows);
    page.charts = std::move(part.charts);
    if (!part.body.empty())
      page.body +=
          fmt::format("<section class=\"entry\"><h3>{}</h3><p><code>{}</code></p><div class=\"pair\">{}</div></section>\n",
                      escape(key.first), escape(key.second), part.body);
  }
  page.body += data_table(report);
  page.close();
}

}  // namespace deltagauge::reports::html
