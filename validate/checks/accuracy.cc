#include "validate/checks/accuracy.h"

#include <sstream>

#include "core/error.h"
#include "core/op.h"
#include "reference/staging.h"

namespace deltagauge::validate {
namespace {

double metric(const reports::TensorMetrics& m, const Ceiling& ceiling) {
  if (ceiling.metric == "rel_l2") return m.rel_l2;
  if (ceiling.metric == "worst_row") return m.worst_row;
  fail("ceiling on ", ceiling.tensor, ": expected metric rel_l2 or worst_row, got '", ceiling.metric, "'");
}

}  // namespace

Verdict judge_outputs(Context& context, std::string_view staging, const Tensors& got) {
  Verdict verdict;
  const bool chunks = context.problem().op == "gdn" && reference::staging(staging).chunk > 0;  // others have one answer
  for (const TensorSpec& spec : op_info(context.problem().op).outputs(context.problem())) {
    const Tensor& tensor = get(got, spec.name);
    Verdict one;
    judge_tensor(spec.name, tensor, context.output(staging, spec.name), one);
    const bool failed = one.outcome == reports::Outcome::fail;
    if (chunks && (failed || one.tensors.at(spec.name).row_ratio > 1)) {
      Verdict again;
      judge_tensor(spec.name, tensor, context.redrawn_output(staging, spec.name), again);
      if (failed || again.outcome == reports::Outcome::pass) one = std::move(again);
    }
    if (one.outcome == reports::Outcome::fail) verdict.add_failure(one.reason);
    verdict.compared += one.compared;
    verdict.tensors.merge(one.tensors);
  }
  for (const Ceiling& ceiling : context.test().ceilings) {
    const auto found = verdict.tensors.find(ceiling.tensor);
    if (found == verdict.tensors.end()) fail("ceiling: the case has no output '", ceiling.tensor, "'");
    const double value = metric(found->second, ceiling);
    if (value <= ceiling.value) continue;
    std::ostringstream text;
    text.precision(4);
    text << ceiling.tensor << ": " << ceiling.metric << " " << value << " passes the " << ceiling.value << " of "
         << ceiling.from;
    verdict.add_failure(text.str());
  }
  return verdict;
}

Verdict Accuracy::run(Context& context, const Backend& backend) const {
  const Problem& problem = context.problem();
  return judge_outputs(context, backend.staging(problem), outputs_of(backend, problem, context.inputs()));
}

}  // namespace deltagauge::validate
