#include "validate/context.h"

#include <cmath>

#include "core/error.h"
#include "core/op.h"
#include "reference/staging.h"
#include "validate/budget.h"
#include "validate/floor.h"
#include "validate/mark.h"

namespace deltagauge::validate {

namespace {

// NaN equals NaN when sets are compared: an oracle without an answer would pass anything.
void require_answer(std::string_view name, const Tensor& tensor, const Rows& rows) {
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i)
      for (std::int64_t j = 0, row = (s.first + i * s.stride) * rows.width; j < rows.width; ++j)
        if (std::isnan(tensor.load(row + j)))
          fail("oracle: ", name, " is NaN at element ", row + j, ": these inputs have no answer to judge by");
}

}  // namespace

Context::Context(const SweepCase& test, Tensors inputs, oracle::Precision precision)
    : test_(test), inputs_(std::move(inputs)), precision_(precision) {}

const Tensors& Context::gold() {
  if (!gold_) {
    const Mark mark("oracle");
    Tensors outputs = oracle::answer(problem(), inputs_, {.precision = precision_}).outputs;
    for (const auto& [name, tensor] : outputs) require_answer(name, tensor, rows_of(problem(), name, tensor.shape()));
    gold_ = std::move(outputs);
  }
  return *gold_;
}

Problem Context::tap_problem(std::string_view staging) const {
  Problem p = problem();
  if (const std::int64_t chunk = reference::staging(staging).chunk) p.chunk = chunk;
  return p;
}

const Tensors& Context::gold_taps(const Problem& p) {
  const auto found = gold_taps_.find(p.chunk);
  if (found != gold_taps_.end()) return found->second;
  const Mark mark("oracle");
  auto answer = oracle::answer(p, inputs_, {.precision = precision_, .taps = true});
  return gold_taps_.emplace(p.chunk, std::move(answer.taps)).first->second;
}

const Tensors& Context::emulated(std::string_view staging, bool taps, std::uint64_t draw) {
  auto& cache = taps ? emulated_taps_ : emulated_;
  const std::string key = std::string(staging) + " " + std::to_string(draw);
  const auto found = cache.find(key);
  if (found != cache.end()) return found->second;
  const Mark mark("emulator");
  const Problem p = taps ? tap_problem(staging) : problem();
  auto rounding = budget_staging(reference::staging(staging));
  rounding.draw = draw;
  return cache.emplace(key, reference::run(p, inputs_, rounding, taps)).first->second;
}

Yardstick Context::yardstick(std::string_view staging, std::string_view tensor, std::uint64_t draw) {
  const Tensor &want = get(gold(), tensor), &emulator = get(emulated(staging, false, draw), tensor);
  const Mark mark("budget");
  Yardstick yard{&want, rows_of(problem(), tensor, want.shape()), {}};
  const auto floor = rounding_floor(problem(), inputs_, reference::staging(staging), tensor, yard.rows);
  yard.budget =
      make_budget(problem(), tensor, yard.rows, emulator, want, floor, emulator.dtype(), reference::staging(staging));
  return yard;
}

const Yardstick& Context::output(std::string_view staging, std::string_view tensor) {
  const std::string key = std::string(staging) + " " + std::string(tensor);
  const auto found = outputs_.find(key);
  if (found != outputs_.end()) return found->second;
  return outputs_.emplace(key, yardstick(staging, tensor, 0)).first->second;
}

const Yardstick& Context::redrawn_output(std::string_view staging, std::string_view tensor) {
  const std::string key = std::string(staging) + " " + std::string(tensor);
  const auto found = redrawn_.find(key);
  if (found != redrawn_.end()) return found->second;
  Yardstick yard = output(staging, tensor);
  for (std::uint64_t draw = 1; draw < kDraws; ++draw) {
    const Budget other = yardstick(staging, tensor, draw).budget;
    for (std::size_t row = 0; row < other.row.size(); ++row) {
      if (other.row[row] <= yard.budget.row[row]) continue;
      yard.budget.row[row] = other.row[row];
      yard.budget.spread[row] = other.spread[row];
    }
  }
  yard.budget.from += ", largest of " + std::to_string(kDraws) + " draws";
  return redrawn_.emplace(key, std::move(yard)).first->second;
}

bool Context::has_tap(std::string_view staging, std::string_view tensor) {
  return find(gold_taps(tap_problem(staging)), tensor) && find(emulated(staging, true), tensor);
}

const Yardstick& Context::tap(std::string_view staging, std::string_view tensor) {
  const std::string key = std::string(staging) + " " + std::string(tensor);
  const auto found = taps_.find(key);
  if (found != taps_.end()) return found->second;
  const Problem p = tap_problem(staging);
  const Tensor &want = get(gold_taps(p), tensor), &emulator = get(emulated(staging, true), tensor);
  const Mark mark("budget");
  Yardstick yard{&want, rows_of(p, tensor, want.shape()), {}};
  const auto floor = rounding_floor(p, inputs_, reference::staging(staging), tensor, yard.rows);
  yard.budget = make_budget(p, tensor, yard.rows, emulator, want, floor, DType::f32, reference::staging(staging));
  return taps_.emplace(key, std::move(yard)).first->second;
}

}  // namespace deltagauge::validate
