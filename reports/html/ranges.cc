// What each stage's values spanned, beside the limits of the format that holds them, on a log2 axis. Results of one backend,
// op and direction are drawn together: a bar reaches from the smallest to the largest magnitude of any of them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>

#include "reports/html/sections.h"
#include "reports/html/text.h"

namespace deltagauge::reports::html {
namespace {

struct Limits {
  double largest = 0, smallest_normal = 0, smallest = 0;  // finite; all 0: unknown format
};

Limits limits_of(std::string_view dtype) {
  if (dtype == "f16") return {65504, 0x1p-14, 0x1p-24};
  if (dtype == "bf16") return {0x1.fep127, 0x1p-126, 0x1p-133};
  if (dtype == "tf32") return {0x1.ffcp127, 0x1p-126, 0x1p-136};
  if (dtype == "f32") return {0x1.fffffep127, 0x1p-126, 0x1p-149};
  return {};
}

struct Span {
  StageRange range;  // over all results
  std::string smallest_case, largest_case;
  std::int64_t results = 0;
};
using Stages = std::map<std::pair<std::string, std::string>, Span>;  // by stage and dtype

void merge(Span& into, const StageRange& r, const std::string& test) {
  if (!into.results++) {
    into.range.dtype = r.dtype;
    into.range.min_abs = HUGE_VAL;
  }
  if (r.min_abs > 0 && r.min_abs < into.range.min_abs) into.range.min_abs = r.min_abs, into.smallest_case = test;
  if (r.max_abs > into.range.max_abs) into.range.max_abs = r.max_abs, into.largest_case = test;
  into.range.values += r.values;
  into.range.overflows += r.overflows;
  into.range.flushes += r.flushes;
}

bool has_values(const StageRange& r) { return r.min_abs > 0 && r.min_abs <= r.max_abs && std::isfinite(r.max_abs); }

// f16's limits are always near; those of the wide formats join the axis where the data comes within 2^20 of them.
std::pair<double, double> extent(const Stages& stages) {
  double low = 1, high = 2;
  for (const auto& [key, span] : stages) {
    const StageRange& r = span.range;
    if (has_values(r)) low = std::min(low, r.min_abs), high = std::max(high, r.max_abs);
    const Limits limits = limits_of(r.dtype);
    if (limits.largest == 0) continue;
    if (r.dtype == "f16" || r.max_abs > limits.largest * 0x1p-20) high = std::max(high, limits.largest);
    if (r.dtype == "f16" || (has_values(r) && r.min_abs < limits.smallest_normal * 0x1p20))
      low = std::min(low, limits.smallest);
  }
  return {low / 4, high > 0x1p1000 ? high : high * 4};
}

std::string limit_mark(const Ruler& x, double limit, const char* kind, double y, std::pair<double, double> shown) {
  if (limit < shown.first || limit > shown.second) return "";
  return fmt::format("<path class=\"{}\" d=\"M{:.1f} {:.1f}v20\"/>", kind, x(limit), y - 14);
}

std::string drawing(const std::string& title, const Stages& stages) {
  constexpr double kWidth = 640, kLeft = 150, kRight = 626, kRow = 26;
  const auto shown = extent(stages);
  const Ruler x(Scale::log2, shown.first, shown.second, kLeft, kRight);
  const double bottom = 10 + kRow * static_cast<double>(stages.size());
  std::string grid, words, bars;
  for (const double tick : x.ticks()) {
    grid += fmt::format("M{:.1f} 6V{}", x(tick), bottom);
    words += fmt::format("<text class=\"mid\" x=\"{:.1f}\" y=\"{}\">{}</text>", x(tick), bottom + 17, power_of_two(tick));
  }
  double y = 26;
  for (const auto& [key, span] : stages) {
    const StageRange& r = span.range;
    const Limits limits = limits_of(r.dtype);
    const bool hit = r.overflows || r.flushes;
    words += fmt::format("<text class=\"end\" x=\"{}\" y=\"{}\">{} ({}){}</text>", kLeft - 8, y,
                         escape(shortened(key.first, 12)), escape(shortened(r.dtype, 6)), hit ? " !" : "");
    if (has_values(r))
      bars += fmt::format(
          "<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"12\"><title>{}: {} to {}</title></rect>",
          hit ? "bar hit" : "bar", x(r.min_abs), y - 10, std::max(2.0, x(r.max_abs) - x(r.min_abs)), escape(key.first),
          power_of_two(r.min_abs), power_of_two(r.max_abs));
    if (limits.largest != 0)
      bars += limit_mark(x, limits.largest, "wall", y, shown) + limit_mark(x, limits.smallest_normal, "normal", y, shown) +
              limit_mark(x, limits.smallest, "wall", y, shown);
    y += kRow;
  }
  words += fmt::format("<text class=\"mid\" x=\"{}\" y=\"{}\">magnitude before rounding</text>", (kLeft + kRight) / 2,
                       bottom + 37);
  const double key = bottom + 60;
  words += fmt::format(
      "<path class=\"wall\" d=\"M{0} {1}v16\"/><text x=\"{2}\" y=\"{3}\">largest, smallest of the format"
      "</text><path class=\"normal\" d=\"M{4} {1}v16\"/><text x=\"{5}\" y=\"{3}\">smallest normal</text>",
      kLeft, key - 12, kLeft + 10, key, kLeft + 250, kLeft + 260);
  return fmt::format(
      "<svg class=\"ranges\" viewBox=\"0 0 {} {}\" role=\"img\"><title>{}</title><path class=\"grid\" d=\"{}\"/>{}{}"
      "</svg>",
      kWidth, bottom + 70, escape(title), grid, bars, words);
}

std::string octaves(double a, double b) { return a > 0 && b > 0 ? fmt::format("{:.1f}", std::log2(a / b)) : ""; }

std::string data_table(const Stages& stages) {
  std::vector<std::vector<std::string>> rows;
  for (const auto& [key, span] : stages) {
    const StageRange& r = span.range;
    const Limits limits = limits_of(r.dtype);
    const bool values = has_values(r);
    rows.push_back({escape(key.first), escape(r.dtype), values ? power_of_two(r.min_abs) : "none",
                    values ? power_of_two(r.max_abs) : "none", values ? octaves(limits.largest, r.max_abs) : "",
                    values ? octaves(r.min_abs, limits.smallest_normal) : "", fmt::format("{}", r.values),
                    fmt::format("{}", r.overflows), fmt::format("{}", r.flushes),
                    "<code>" + escape(span.smallest_case) + "</code>", "<code>" + escape(span.largest_case) + "</code>"});
  }
  return table_of("Ranges by stage; room in octaves (factors of 2) to the largest value and to the smallest normal one",
                  {"Stage", "Format", "Smallest", "Largest", "Room above", "Room below", "Values", "Overflows", "Flushes",
                   "Smallest in", "Largest in"},
                  rows);
}

}  // namespace

void add_ranges(Page& page, const Report& report) {
  std::map<std::tuple<std::string, std::string, std::string>, Stages> groups;
  for (const Result& r : report.results)
    for (const auto& [stage, range] : r.ranges)
      merge(groups[{r.op, r.direction, r.backend}][{stage, range.dtype}], range, r.test);
  if (groups.empty()) return;
  page.open("ranges", "Ranges of the stages");
  page.body +=
      "<p>Limits that are far from every value of a figure are left out of its axis; the table under it has the room to "
      "them. \"!\" marks stages with overflows or flushes.</p>\n";
  for (const auto& [key, stages] : groups) {
    std::int64_t overflows = 0, flushes = 0;
    for (const auto& [stage, span] : stages) overflows += span.range.overflows, flushes += span.range.flushes;
    const std::string title = fmt::format("{} {}, {}", std::get<0>(key), std::get<1>(key), std::get<2>(key));
    page.body += fmt::format(
        "<figure><h3>{0}</h3><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Ranges, {0}\">{1}</div>"
        "<figcaption>{2}, {3}, {4}.</figcaption>{5}</figure>\n",
        escape(title), drawing(title, stages), count(static_cast<std::int64_t>(stages.size()), "stage", "stages"),
        count(overflows, "overflow", "overflows"), count(flushes, "flush", "flushes"),
        folded("Numbers", data_table(stages)));
  }
  page.close();
}

}  // namespace deltagauge::reports::html
