#include "validate/checks/packing.h"

#include "core/op.h"

namespace deltagauge::validate {
namespace {

Problem alone(const Problem& problem, std::size_t n) {
  Problem one = problem;
  one.lengths = {problem.lengths[n]};
  one.ids = {problem.ids.empty() ? static_cast<std::int64_t>(n) : problem.ids[n]};
  one.capacity = 0;
  return one;
}

// The part of each tensor that belongs to sequence n; per-head tensors stand as they are.
Tensor part_of(const TensorSpec& spec, const Tensor& tensor, const Problem& problem, std::size_t n) {
  if (spec.token_dim == 0) return rows(tensor, problem.offsets()[n], problem.lengths[n]);
  if (spec.name == "initial_state" || spec.name == "final_state") return rows(tensor, static_cast<std::int64_t>(n), 1);
  if (spec.name != "cu_seqlens") return tensor;
  const double ends[] = {0, static_cast<double>(problem.lengths[n])};
  return from_f64(tensor.dtype(), {2}, ends);
}

Tensors parts_of(const std::vector<TensorSpec>& specs, const Tensors& tensors, const Problem& problem, std::size_t n) {
  Tensors parts;
  for (const TensorSpec& spec : specs)
    if (const Tensor* tensor = find(tensors, spec.name)) parts[spec.name] = part_of(spec, *tensor, problem, n);
  return parts;
}

}  // namespace

Verdict Packing::run(Context& context, const Backend& backend) const {
  const Problem& problem = context.problem();
  if (problem.sequences() < 2) return skip("one sequence: nothing to compare");
  const OpInfo& op = op_info(problem.op);
  const Tensors packed = outputs_of(backend, problem, context.inputs());
  Verdict verdict;
  for (std::size_t n = 0; n < problem.lengths.size() && verdict.outcome == reports::Outcome::pass; ++n) {
    const Problem one = alone(problem, n);
    if (const auto why = backend.unsupported(one))
      return skip("sequence " + std::to_string(n) + " alone is not supported: " + *why);
    const Tensors got = outputs_of(backend, one, parts_of(op.inputs(problem), context.inputs(), problem, n));
    expect_same_bits(one, parts_of(op.outputs(problem), packed, problem, n), got,
                     "of sequence " + std::to_string(n) + " in the batch against alone", verdict);
  }
  return verdict;
}

}  // namespace deltagauge::validate
