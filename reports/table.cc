#include "reports/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>

#include "reports/locate.h"
#include "reports/printable.h"
#include "reports/timing_table.h"

namespace deltagauge::reports {
namespace {

std::string_view colour_of(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "\x1b[32m";
    case Outcome::fail:
      return "\x1b[1;31m";
    case Outcome::skip:
      return "\x1b[33m";
    case Outcome::error:
      return "\x1b[1;35m";
  }
  return "";
}

std::string painted(Outcome outcome, std::string_view text, const TableStyle& style) {
  return style.colour ? fmt::format("{}{}\x1b[0m", colour_of(outcome), text) : std::string(text);
}

// Which of two tensors is in a worse way: one that is non-finite where it should not be, then one over its budget.
bool worse_off(const TensorMetrics& a, const TensorMetrics& b) {
  if ((a.non_finite > 0) != (b.non_finite > 0)) return a.non_finite > 0;
  return worse(a.row_ratio, b.row_ratio);
}

// The tensor a line shows: the one in the worst way.
const std::pair<const std::string, TensorMetrics>* tightest(const Result& result) {
  const auto worst = std::max_element(result.tensors.begin(), result.tensors.end(),
                                      [](const auto& a, const auto& b) { return worse_off(b.second, a.second); });
  return worst == result.tensors.end() ? nullptr : &*worst;
}

std::string cut(std::string text, int width) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (width <= 0 || static_cast<int>(text.size()) <= width) return text;
  return width <= 3 ? text.substr(0, static_cast<std::size_t>(width))
                    : text.substr(0, static_cast<std::size_t>(width - 3)) + "...";
}

struct Columns {
  std::size_t backend = 7, check = 5, tensor = 6;  // at least their headings
};

Columns columns_of(const Report& report) {
  Columns c;
  for (const Result& r : report.results) {
    c.backend = std::max(c.backend, r.backend.size());
    c.check = std::max(c.check, r.check.size());
    if (const auto* worst = tightest(r)) c.tensor = std::max(c.tensor, worst->first.size());
  }
  return c;
}

std::string line(const Result& r, const Columns& c, const TableStyle& style) {
  std::string numbers(c.tensor + 25, ' ');
  if (const auto* worst = tightest(r)) {
    const TensorMetrics& m = worst->second;
    numbers = fmt::format("{:{}}  {:8.2e} {:6.3g} {:7.3g}", worst->first, c.tensor, m.rel_l2, m.row_ratio, m.element_ratio);
  }
  const std::string body =
      fmt::format("  {:{}}  {:{}}  {} {:7.2f}  {}", r.backend, c.backend, r.check, c.check, numbers, r.seconds, r.reason);
  const int room = style.width ? std::max(style.width - 8, 1) : 0;
  std::string text = "  " + painted(r.outcome, fmt::format("{:5}", name(r.outcome)), style) + cut(body, room);
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string rows(const Report& report, const TableStyle& style) {
  const Columns c = columns_of(report);
  std::vector<const Result*> order;
  std::map<std::string_view, std::size_t> first;  // a case's lines stand together, in the order cases first appear
  for (const Result& r : report.results) {
    first.emplace(r.test, first.size());
    if (!r.timing) order.push_back(&r);  // those have a table of their own
  }
  if (order.empty()) return "";
  std::stable_sort(order.begin(), order.end(),
                   [&](const Result* a, const Result* b) { return first[a->test] < first[b->test]; });
  std::string text = cut(fmt::format("         {:{}}  {:{}}  {:{}}  {:>8} {:>6} {:>7} {:>7}  reason", "backend", c.backend,
                                     "check", c.check, "tensor", c.tensor, "rel-L2", "row", "element", "seconds"),
                         style.width) +
                     "\n";
  std::string_view current;
  for (const Result* r : order) {
    if (r->test != current) text += r->test + (r->name.empty() ? "" : "  (" + r->name + ")") + "\n";
    current = r->test;
    text += line(*r, c, style);
  }
  return text;
}

std::string in_words(const Result& r, const TableStyle& style) {
  std::string text = painted(r.outcome, r.outcome == Outcome::fail ? "FAILED" : "BROKEN", style);
  text += fmt::format(" {} {}\n  {}\n", r.backend, r.check, r.test);
  if (!r.name.empty()) text += "  (" + r.name + ")\n";
  text += "  " + r.reason + "\n";
  std::vector<const std::pair<const std::string, TensorMetrics>*> tensors;
  for (const auto& entry : r.tensors) tensors.push_back(&entry);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto* a, const auto* b) { return worse_off(a->second, b->second); });
  for (const auto* entry : tensors) {
    const TensorMetrics& m = entry->second;
    text +=
        fmt::format("  {}: worst row error {:.3g} of its budget {:.3g}, worst element {:.3g} of its share; rel-L2 {:.2e}\n",
                    entry->first, m.row_ratio, m.budget, m.element_ratio, m.rel_l2);
    if (!m.budget_from.empty()) text += fmt::format("    budget: {}\n", m.budget_from);
    if (m.non_finite) text += fmt::format("    {} values are not finite where the right value is\n", m.non_finite);
    if (m.worst)
      text += fmt::format("    at {}\n    expected {:.9g}, got {:.9g}\n", locate(r.test, entry->first, m.worst->index),
                          m.worst->want, m.worst->got);
  }
  if (!r.repro.empty()) text += "  again: " + r.repro + "\n";
  if (r.shrunk) text += "  shrunk to " + r.shrunk->test + "\n  tensors: " + r.shrunk->file + "\n";
  return text;
}

// A reason of several lines keeps them, indented: what stands at the margin is this program's.
std::string indented(const std::string& text) {
  std::string out;
  std::size_t at = 0;
  for (std::size_t end; (end = text.find('\n', at)) != text.npos; at = end + 1)
    out += printable(std::string_view(text).substr(at, end - at)) + "\n    ";
  return out + printable(std::string_view(text).substr(at));
}

// The report with texts that a terminal may get.
Report made_safe(Report report) {
  for (Result& r : report.results) {
    for (std::string* text : {&r.test, &r.name, &r.backend, &r.check, &r.repro}) *text = printable(*text);
    r.reason = indented(r.reason);
    if (r.shrunk) r.shrunk = ShrunkCase{printable(r.shrunk->test), printable(r.shrunk->file)};
    std::map<std::string, TensorMetrics> tensors;
    for (auto& [tensor, metrics] : r.tensors) {
      metrics.budget_from = printable(metrics.budget_from);
      tensors.emplace(printable(tensor), std::move(metrics));
    }
    r.tensors = std::move(tensors);
  }
  return report;
}

std::string unfinished(const Report& report) {
  return fmt::format("unfinished: {} jobs left{}", report.jobs_left,
                     report.shard ? " of shard " + to_string(*report.shard) : "");
}

std::string closing(const Report& report, const TableStyle& style) {
  const auto s = report.summary();
  std::map<std::string_view, std::int64_t> skips;
  for (const Result& r : report.results)
    if (r.outcome == Outcome::skip) ++skips[r.reason];
  std::string text;
  for (const auto& [reason, count] : skips) text += cut(fmt::format("skipped {}: {}", count, reason), style.width) + "\n";
  if (report.jobs_left) text += unfinished(report) + "\n";
  const Outcome overall = s.failed ? Outcome::fail : s.errors ? Outcome::error : s.judged ? Outcome::pass : Outcome::skip;
  const std::string counts = fmt::format("{} judged: {} passed, {} failed; {} skipped, {} errors", s.judged, s.passed,
                                         s.failed, s.skipped, s.errors);
  return text + painted(overall, counts, style) + "\n";
}

}  // namespace

std::string table(const Report& unsafe, const TableStyle& style) {
  const Report report = made_safe(unsafe);
  std::string text;
  if (style.rows == Rows::all)
    for (const std::string& part : {rows(report, style), timing_table(report, style.width)})
      if (!part.empty()) text += part + "\n";
  for (const Result& r : report.results)
    if (r.outcome == Outcome::fail || r.outcome == Outcome::error) text += in_words(r, style) + "\n";
  return text + closing(report, style);
}

}  // namespace deltagauge::reports
