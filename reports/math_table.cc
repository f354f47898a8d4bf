#include "reports/math_table.h"

#include <fmt/format.h>

#include <algorithm>

namespace deltagauge::reports {
namespace {

// A tensor of the fast run, the one in the worst way, and the same of the precise run.
struct Pair {
  std::string tensor;
  const TensorMetrics *fast = nullptr, *precise = nullptr;
};

Pair pair_of(const Result& r) {
  Pair pair;
  for (const auto& [name, metrics] : r.tensors) {
    const auto beside = r.tensors.find(name + ".precise");
    if (beside != r.tensors.end() && (!pair.fast || worse(metrics.row_ratio, pair.fast->row_ratio)))
      pair = {name, &metrics, &beside->second};
  }
  return pair;
}

std::string microseconds(const Result& r, const char* value) {
  const auto found = r.values.find(value);
  return found == r.values.end() ? "" : fmt::format("{:.2f}", 1e6 * found->second);
}

std::string cut(std::string text, int width) {
  text.erase(text.find_last_not_of(' ') + 1);
  if (width > 3 && static_cast<int>(text.size()) > width)
    text.replace(static_cast<std::size_t>(width - 3), text.npos, "...");
  return text + "\n";
}

}  // namespace

std::string math_table(const Report& report, int width) {
  std::size_t backend = 7, check = 5, tensor = 6;  // at least their headings
  std::vector<std::pair<const Result*, Pair>> rows;
  for (const Result& r : report.results) {
    const Pair pair = pair_of(r);
    if (!pair.fast) continue;
    rows.emplace_back(&r, pair);
    backend = std::max(backend, r.backend.size());
    check = std::max(check, r.check.size());
    tensor = std::max(tensor, pair.tensor.size());
  }
  if (rows.empty()) return "";
  std::string text = cut(
      fmt::format("  {:{}}  {:{}}  {:{}}  {:>11} {:>8} {:>9} {:>8} {:>9} {:>9} {:>6}", "backend", backend, "check", check,
                  "tensor", tensor, "fast rel-L2", "precise", "fast row", "precise", "fast us", "precise", "ratio"),
      width);
  std::string_view current;
  for (const auto& [r, pair] : rows) {
    if (r->test != current) text += r->test + (r->name.empty() ? "" : "  (" + r->name + ")") + "\n";
    current = r->test;
    const auto ratio = r->values.find("precise_over_fast");
    text +=
        cut(fmt::format("  {:{}}  {:{}}  {:{}}  {:11.2e} {:8.2e} {:9.3g} {:8.3g} {:>9} {:>9} {:>6}", r->backend, backend,
                        r->check, check, pair.tensor, tensor, pair.fast->rel_l2, pair.precise->rel_l2, pair.fast->row_ratio,
                        pair.precise->row_ratio, microseconds(*r, "fast_seconds"), microseconds(*r, "precise_seconds"),
                        ratio == r->values.end() ? "" : fmt::format("{:.3f}", ratio->second)),
            width);
  }
  return text;
}

}  // namespace deltagauge::reports
