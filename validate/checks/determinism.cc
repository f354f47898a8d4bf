#include "validate/checks/determinism.h"

namespace deltagauge::validate {

Verdict Determinism::run(Context& context, const Backend& backend) const {
  constexpr int kRepeats = 3;
  const Problem& problem = context.problem();
  const auto plan = backend.plan(problem, context.inputs(), {});
  plan->run();
  const Tensors first = plan->outputs();
  Verdict verdict;
  for (int repeat = 2; repeat <= kRepeats; ++repeat) {
    plan->run();
    expect_same_bits(problem, plan->outputs(), first, "in run " + std::to_string(repeat) + " of one plan", verdict);
  }
  expect_same_bits(problem, outputs_of(backend, problem, context.inputs()), first, "in a second plan", verdict);
  return verdict;
}

}  // namespace deltagauge::validate
