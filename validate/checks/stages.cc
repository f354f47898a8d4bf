#include "validate/checks/stages.h"

#include "core/op.h"

namespace deltagauge::validate {

Verdict Stages::run(Context& context, const Backend& backend) const {
  if (context.problem().op != "gdn") return skip("op " + context.problem().op + " has no intermediates");
  const std::string_view staging = backend.staging(context.problem());
  const Problem problem = context.tap_problem(staging);
  const Tensors got = outputs_of(backend, problem, context.inputs(), {.taps = true});
  Verdict verdict;
  for (const auto& [name, tensor] : got) {
    bool output = false;
    for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) output = output || spec.name == name;
    if (output || !context.has_tap(staging, name)) continue;
    const Yardstick& yardstick = context.tap(staging, name);
    judge_tensor(name, tensor, yardstick, verdict);
    if (name == "Ainv") judge_inverse_bound(problem, context.inputs(), tensor, yardstick, verdict);
  }
  return verdict.tensors.empty() ? skip("backend gives no intermediates") : verdict;
}

}  // namespace deltagauge::validate
