#include "validate/yardsticks.h"

#include "core/op.h"
#include "validate/budget.h"
#include "validate/floor.h"

namespace deltagauge::validate {

Yardsticks yardsticks_of(const Problem& problem, const Tensors& inputs, const Tensors& gold,
                         const reference::Staging& declared, const reference::Staging& as) {
  const Tensors emulated = reference::run(problem, inputs, as, false);
  Yardsticks yardsticks;
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) {
    const Tensor& want = get(gold, spec.name);
    Yardstick yard{&want, rows_of(problem, spec.name, want.shape()), {}};
    const auto floor = rounding_floor(problem, inputs, declared, spec.name, yard.rows);
    yard.budget = make_budget(problem, spec.name, yard.rows, get(emulated, spec.name), want, floor, spec.dtype, declared);
    yardsticks.emplace(spec.name, std::move(yard));
  }
  return yardsticks;
}

Yardsticks own_yardsticks(const Problem& problem, const Tensors& inputs, const Tensors& gold,
                          const reference::Staging& declared) {
  return yardsticks_of(problem, inputs, gold, declared, budget_staging(declared));
}

Yardsticks wide_yardsticks(const Problem& problem, const Tensors& inputs, const Tensors& gold,
                           const reference::Staging& declared) {
  auto yardsticks =
      yardsticks_of(problem, inputs, gold, declared, reference::without_range_limits(budget_staging(declared), problem.io));
  for (auto& [name, yardstick] : yardsticks) yardstick.budget.from += ", without range limits";
  return yardsticks;
}

void judge_all(const Tensors& got, const Yardsticks& yardsticks, const std::string& suffix, Verdict& verdict) {
  for (const auto& [name, yardstick] : yardsticks) judge_tensor(name + suffix, get(got, name), yardstick, verdict);
}

}  // namespace deltagauge::validate
