#include "validate/checks/causal.h"

#include "core/op.h"

namespace deltagauge::validate {
namespace {

std::int64_t kept(std::int64_t length) { return (length + 1) / 2; }  // tokens of a sequence that stay as they are

double factor(std::string_view tensor) {  // exact in every format, and keeps g <= 0 and beta in its range
  if (tensor == "g") return 2;
  return tensor == "beta" ? 0.5 : -1;
}

Tensor change_later(const Problem& problem, const std::string& name, const Tensor& tensor) {
  Tensor changed = cast(tensor, tensor.dtype());
  const Tensor source = changed;
  const std::int64_t width = tensor.dim(0) ? tensor.numel() / tensor.dim(0) : 0;
  const auto offsets = problem.offsets();
  for (std::size_t n = 0; n < problem.lengths.size(); ++n) {
    const std::int64_t first = offsets[n] + kept(problem.lengths[n]), end = offsets[n + 1];
    for (std::int64_t row = first; row < end; ++row)
      for (std::int64_t j = 0; j < width; ++j)
        changed.store(row * width + j, factor(name) * source.load((first + end - 1 - row) * width + j));
  }
  return changed;
}

}  // namespace

Verdict Causal::run(Context& context, const Backend& backend) const {
  const Problem& problem = context.problem();
  bool any = false;
  for (const std::int64_t length : problem.lengths) any = any || length > 1;
  if (!any) return skip("no sequence has two tokens");
  Tensors later = context.inputs();
  for (const TensorSpec& spec : op_info(problem.op).inputs(problem))
    if (spec.token_dim == 0 && find(later, spec.name)) later[spec.name] = change_later(problem, spec.name, later[spec.name]);
  const Tensors before = outputs_of(backend, problem, context.inputs());
  const Tensors after = outputs_of(backend, problem, later);
  Verdict verdict;
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) {
    if (spec.token_dim != 0) continue;  // the final state sees every token
    const Tensor& tensor = get(before, spec.name);
    Rows rows = rows_of(problem, spec.name, tensor.shape());
    for (Series& s : rows.series) s.count = kept(s.count);
    verdict.compared += elements_of(rows);
    const std::string why = bit_mismatch(problem, spec.name, get(after, spec.name), tensor, rows);
    if (!why.empty()) verdict.add_failure(spec.name + " of earlier tokens, after later ones changed: " + why);
  }
  return verdict;
}

}  // namespace deltagauge::validate
