// A comparison as text and as JSON.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/compare/compare.h"

namespace deltagauge::reports::compare {
namespace {

using Json = nlohmann::ordered_json;

Json number(double x) {
  if (std::isnan(x)) return "nan";
  if (std::isinf(x)) return x > 0 ? "inf" : "-inf";
  return x;
}

std::string line(std::string text, int width) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  if (width > 0 && text.size() > static_cast<std::size_t>(width)) text.resize(static_cast<std::size_t>(width));
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string seconds(double x) {
  return x < 1e-3 ? fmt::format("{:.2f} us", x * 1e6)
         : x < 1  ? fmt::format("{:.3f} ms", x * 1e3)
                  : fmt::format("{:.3f} s", x);
}

std::string percent(double ratio) { return fmt::format("{:+.2f}%", 100 * (ratio - 1)); }

// What else there is to say of a pair, at the end of its line.
std::string remarks(const Pair& pair) {
  std::string text = pair.note;
  const auto add = [&](const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
  if (pair.accuracy && (pair.accuracy->base != pair.accuracy->fresh))
    add(fmt::format("row ratio {:.3g} -> {:.3g}", pair.accuracy->base, pair.accuracy->fresh));
  if (!pair.changed_bits.empty()) add(fmt::format("bits changed: {}", fmt::join(pair.changed_bits, " ")));
  return text;
}

std::vector<const Pair*> worst_first(const Comparison& comparison) {
  std::vector<const Pair*> order;
  for (const Pair& pair : comparison.pairs) order.push_back(&pair);
  std::stable_sort(order.begin(), order.end(), [](const Pair* a, const Pair* b) {
    if (a->verdict != b->verdict) return a->verdict < b->verdict;
    if (a->failed != b->failed) return a->failed;
    const double x = a->time ? a->time->ratio.centre : 0, y = b->time ? b->time->ratio.centre : 0;
    return x > y;
  });
  return order;
}

}  // namespace

std::string text(const Comparison& comparison, int width) {
  std::size_t backend = 7, check = 5;  // at least their headings
  for (const Pair& pair : comparison.pairs) {
    backend = std::max(backend, pair.backend.size());
    check = std::max(check, pair.check.size());
  }
  std::string out = line(fmt::format("{:11}  {:>8}  {:>18}  {:>7}  {:>10}  {:>10}  {:{}}  {:{}}  case", "verdict", "change",
                                     "interval", "q", "base", "fresh", "backend", backend, "check", check),
                         width);
  double least = INFINITY, most = 0;
  for (const Pair* pair : worst_first(comparison)) {
    std::string numbers(61, ' ');
    if (const auto& t = pair->time) {
      numbers = fmt::format("{:>8}  {:>18}  {:7.1e}  {:>10}  {:>10}", percent(t->ratio.centre),
                            "[" + percent(t->ratio.low) + ", " + percent(t->ratio.high) + "]", t->q, seconds(t->base),
                            seconds(t->fresh));
      least = std::min(least, t->detectable);
      most = std::max(most, t->detectable);
    }
    const std::string end = remarks(*pair);
    out += line(fmt::format("{:11}  {}  {:{}}  {:{}}  {}{}", name(pair->verdict), numbers, pair->backend, backend,
                            pair->check, check, pair->test, end.empty() ? "" : "  (" + end + ")"),
                width);
  }
  for (const std::string& warning : comparison.warnings) out += line("warning: " + warning, width);
  if (std::isinf(most))
    out += line("too few runs for some rows to find any slowdown in them", width);
  else if (most > 0)
    out += line(fmt::format("a slowdown of {:.1f}% to {:.1f}%, by row, is found 19 times in 20", 100 * least, 100 * most),
                width);
  out += line("", width);
  for (const Verdict verdict :
       {Verdict::regression, Verdict::invalid, Verdict::missing, Verdict::improvement, Verdict::added, Verdict::same}) {
    const auto count = std::count_if(comparison.pairs.begin(), comparison.pairs.end(),
                                     [&](const Pair& pair) { return pair.verdict == verdict; });
    if (count) out += fmt::format("{} {}, ", count, name(verdict));
  }
  const auto failed =
      std::count_if(comparison.pairs.begin(), comparison.pairs.end(), [](const Pair& pair) { return pair.failed; });
  return out + fmt::format("{} failed\n", failed);
}

std::string to_json(const Comparison& comparison) {
  Json pairs = Json::array();
  for (const Pair& pair : comparison.pairs) {
    Json out = {{"case", pair.test},
                {"backend", pair.backend},
                {"check", pair.check},
                {"verdict", name(pair.verdict)},
                {"failed", pair.failed},
                {"note", pair.note},
                {"changed_bits", pair.changed_bits}};
    if (const auto& t = pair.time)
      out["time"] = {
          {"base", number(t->base)},
          {"fresh", number(t->fresh)},
          {"ratio", {{"centre", number(t->ratio.centre)}, {"low", number(t->ratio.low)}, {"high", number(t->ratio.high)}}},
          {"p_samples", number(t->p_samples)},
          {"p", number(t->p)},
          {"q", number(t->q)},
          {"detectable", number(t->detectable)},
          {"cycles", t->cycles ? number(*t->cycles) : Json(nullptr)}};
    if (const auto& a = pair.accuracy) out["row_ratio"] = {{"base", number(a->base)}, {"fresh", number(a->fresh)}};
    pairs.push_back(std::move(out));
  }
  const Json root = {{"schema", "deltagauge.comparison/1"},
                     {"exit_status", comparison.exit_status()},
                     {"session_sd", comparison.session_sd},
                     {"warnings", comparison.warnings},
                     {"pairs", pairs}};
  return root.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace deltagauge::reports::compare
