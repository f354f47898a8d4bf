#include "reports/timing_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace deltagauge::reports {
namespace {

std::string fitted(std::string text, int width) {
  text.erase(text.find_last_not_of(' ') + 1);
  if (width > 3 && static_cast<int>(text.size()) > width)
    text.replace(static_cast<std::size_t>(width - 3), text.npos, "...");
  return text + "\n";
}

std::string or_blank(bool known, const char* format, double value) {
  return known ? fmt::format(fmt::runtime(format), value) : std::string();
}

std::string remarks(const Timing& t) {
  std::string text = t.settled ? "" : "still noisy at the time limit";
  for (const std::string& reason : t.conditions.throttle) text += (text.empty() ? "" : ", ") + reason;
  return text;
}

}  // namespace

std::string timing_table(const Report& report, int width) {
  std::size_t backend = 7, timer = 5;
  bool any = false;
  for (const Result& r : report.results)
    if (r.timing) {
      any = true;
      backend = std::max(backend, r.backend.size());
      timer = std::max(timer, r.check.size());
    }
  if (!any) return "";
  std::string text =
      fitted(fmt::format("  {:{}}  {:{}}  {:>9} {:>9} {:>7} {:>6} {:>7} {:>6} {:>7} {:>6}", "backend", backend, "timer",
                         timer, "median us", "p95 us", "samples", "TB/s", "TFLOP/s", "roof %", "x floor", "MHz"),
             width);
  std::string_view current;
  for (const Result& r : report.results) {
    if (!r.timing) continue;
    const Timing& t = *r.timing;
    if (r.test != current) text += r.test + (r.name.empty() ? "" : "  (" + r.name + ")") + "\n";
    current = r.test;
    const bool floor = t.floor > 0;
    text +=
        fitted(fmt::format("  {:{}}  {:{}}  {:9.2f} {:9.2f} {:7} {:6.3f} {:7.1f} {:>6} {:>7} {:>6}  {}", r.backend, backend,
                           r.check, timer, 1e6 * t.median, 1e6 * t.p95, t.samples.size(), t.tb_s(), t.tflop_s(),
                           or_blank(floor, "{:.1f}", t.roofline_percent()), or_blank(floor, "{:.2f}", t.x_of_floor()),
                           or_blank(t.conditions.sm_mhz.has_value(), "{:.0f}", t.conditions.sm_mhz.value_or(0)), remarks(t)),
               width);
  }
  if (const auto& roofline = report.roofline)
    text += fitted(fmt::format("roofline of this run: copy {:.2f} TB/s, bf16 products {:.0f} TFLOP/s", roofline->copy_tb_s,
                               roofline->tensor_tflop_s),
                   width);
  return text;
}

}  // namespace deltagauge::reports
