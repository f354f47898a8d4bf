#include "validate/frontier.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/inputs.h"
#include "validate/stage_ranges.h"
#include "validate/yardsticks.h"

namespace deltagauge::validate {
namespace {

constexpr double kResolution = 0x1p-17;  // relative distance of the two sides of an edge: 1e-4 at 12.675

void set_everywhere(Case& c, const std::string& tensor, std::vector<std::string> index, double x) {
  std::erase_if(c.overrides, [&](const Override& o) { return o.tensor == tensor; });
  c.overrides.push_back({tensor, std::move(index), x});
}

void set_g(Case& c, double x) {
  std::erase_if(c.overrides, [](const Override& o) { return o.tensor == "g"; });
  c.problem.gate = {"constant", -x, true};
}

// The whole sum at one row of each chunk, the last of a 16-row block: a split gate about any row reaches over it.
void set_sum_g(Case& c, double x) {
  std::erase_if(c.overrides, [](const Override& o) { return o.tensor == "g"; });
  c.problem.gate = {"none", 0, false};
  const std::int64_t chunk = c.problem.chunk, row = std::max<std::int64_t>(0, chunk / 2 - 1);
  std::int64_t begin = 0;
  for (const std::int64_t length : c.problem.lengths) {
    for (std::int64_t t = row; t < std::max(length, row + 1); t += chunk) {
      if (length == 0) break;
      c.overrides.push_back({"g", {std::to_string(begin + std::min(t, length - 1)), "*"}, -x});
    }
    begin += length;
  }
}

void set_h0(Case& c, double x) {
  c.problem.h0 = {"zero", 0, false};
  set_everywhere(c, "initial_state", {"*", "*", "*", "*"}, x);
}
void set_v(Case& c, double x) { set_everywhere(c, "v", {"*", "*", "*"}, x); }
void set_beta(Case& c, double x) {
  std::erase_if(c.overrides, [](const Override& o) { return o.tensor == "beta"; });
  c.problem.beta = {"const", x, true};
}

// Past these gates every decay is 0 in f64 too.
double top_gate(const Problem&) { return 0x1p14; }
double top_state(const Problem& p) { return largest_finite(p.state); }
double top_io(const Problem& p) { return largest_finite(p.io); }
double top_beta(const Problem&) { return 2; }

constexpr Quantity kQuantities[] = {
    {"g", "|g| of every token", 0x1p-10, 2, top_gate, set_g},
    {"sum_g", "sum of |g| over a chunk, all of it at one token", 0x1p-10, 2, top_gate, set_sum_g},
    {"h0", "|h0| of every element of the initial state", 1, 16, top_state, set_h0},
    {"v", "|v| of every element", 1, 16, top_io, set_v},
    {"beta", "beta of every token", 0x1p-6, 2, top_beta, set_beta},
};

struct Probe {
  std::string overflow, inaccurate;  // why; empty: it is not
  std::int64_t compared = 0;         // elements
};

Probe probe(const Case& c, const Backend& backend, Draws& draws) {
  Probe result;
  try {
    const Draws::Draw& draw = draws.get(c);
    const auto& declared = reference::staging(backend.staging(c.problem));
    const Yardsticks yardsticks = wide_yardsticks(c.problem, draw.inputs, draw.gold, declared);
    const auto no_tap = [](std::string_view) -> const Tensor* { return nullptr; };
    const StageRanges met = stage_ranges(backend, c.problem, draw.inputs, yardsticks, no_tap);
    result.overflow = met.overflow;
    Verdict verdict;
    judge_all(met.outputs, yardsticks, "", verdict);
    result.inaccurate = verdict.reason;
    result.compared = verdict.compared;
  } catch (const Refused& refused) {
    result.overflow = result.inaccurate = refused.what();
  }
  return result;
}

struct Edge {
  std::optional<double> safe, unsafe;  // neighbours; no unsafe one: safe to the top
};

Edge edge_of(const Quantity& quantity, const Problem& problem, const std::function<bool(double)>& safe) {
  const double top = quantity.top(problem);
  double low = quantity.start;
  if (!safe(low)) return {{}, low};
  double high = low;
  while (high < top) {
    high = std::min(low * quantity.factor, top);
    if (!safe(high)) break;
    low = high;
  }
  if (low == high) return {low, {}};
  while (high > low * (1 + kResolution)) {
    const auto middle = static_cast<double>(static_cast<float>(std::sqrt(low) * std::sqrt(high)));
    if (!(middle > low && middle < high)) break;
    (safe(middle) ? low : high) = middle;
  }
  return {low, high};
}

}  // namespace

std::span<const Quantity> quantities() { return kQuantities; }

const Quantity& find_quantity(std::string_view name) {
  std::string known;
  for (const Quantity& quantity : kQuantities) {
    if (quantity.name == name) return quantity;
    known += " " + std::string(quantity.name);
  }
  fail("quantity: expected one of", known, ", got '", name, "'");
}

const Draws::Draw& Draws::get(const Case& c) {
  auto& draw = draws_[to_id(c)];
  if (!draw) {
    auto fresh = std::make_unique<Draw>();
    fresh->inputs = make_inputs(c);
    fresh->gold = oracle::answer(c.problem, fresh->inputs, {.precision = precision_}).outputs;
    draw = std::move(fresh);
  }
  return *draw;
}

reports::Result frontier(const Case& base, const Backend& backend, const Quantity& quantity, Draws& draws) {
  std::map<double, Probe> probes;
  const auto at = [&](double x) {
    Case c = base;
    quantity.set(c, x);
    return c;
  };
  const auto probe_at = [&](double x) -> const Probe& {
    const auto found = probes.find(x);
    return found != probes.end() ? found->second : probes.emplace(x, probe(at(x), backend, draws)).first->second;
  };
  const Edge overflow = edge_of(quantity, base.problem, [&](double x) { return probe_at(x).overflow.empty(); });
  const Edge accuracy = edge_of(quantity, base.problem, [&](double x) { return probe_at(x).inaccurate.empty(); });
  const Edge& first = accuracy.safe < overflow.safe ? accuracy : overflow;  // nothing is less than any value

  reports::Result result;
  const std::string name(quantity.name);
  if (std::none_of(probes.begin(), probes.end(),
                   [](const auto& one) { return one.second.compared || !one.second.overflow.empty(); })) {
    result.outcome = reports::Outcome::skip;
    result.reason = unless_empty({}).reason;
    return result;
  }
  for (const auto& [key, value] : {std::pair{"largest_safe", first.safe},
                                   {"smallest_unsafe", first.unsafe},
                                   {"largest_without_overflow", overflow.safe},
                                   {"largest_accurate", accuracy.safe}})
    if (value) result.values[name + "." + key] = *value;
  result.test = to_id(at(first.safe.value_or(quantity.start)));
  result.outcome = reports::Outcome::pass;
  std::ostringstream text;
  text.precision(5);
  if (!first.unsafe) {
    text << name << ": safe up to " << *first.safe << ", the largest tried";
  } else {
    const Probe& why = probe_at(*first.unsafe);
    const std::string& reason = &first == &overflow ? why.overflow : why.inaccurate;
    if (first.safe)
      text << name << ": safe up to " << *first.safe << "; at " << to_id(at(*first.unsafe)) << " " << reason;
    else
      text << name << ": expected " << *first.unsafe << " to be safe, got: " << reason;
  }
  if (first.safe) {
    result.name = text.str();
  } else {
    result.outcome = reports::Outcome::fail;
    result.reason = text.str();
  }
  return result;
}

}  // namespace deltagauge::validate
