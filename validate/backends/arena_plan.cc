#include "validate/backends/arena_plan.h"

#include <cstring>

#include "core/op.h"
#include "validate/rows.h"

namespace deltagauge::validate {

ArenaPlan::ArenaPlan(const Problem& problem, const Tensors& inputs, const PlanOptions& options, Compute compute)
    : arena_(options.fill), problem_(problem), compute_(std::move(compute)) {
  const OpInfo& op = op_info(problem.op);
  for (const TensorSpec& spec : op.inputs(problem)) {
    arena_.add_input(spec.name, get(inputs, spec.name));
    input_names_.push_back(spec.name);
  }
  for (const TensorSpec& spec : op.outputs(problem)) {
    arena_.add_output(spec.name, spec.dtype, spec.shape);
    output_names_.push_back(spec.name);
  }
}

void ArenaPlan::run() {
  arena_.reset();
  Tensors inputs;
  for (const std::string& name : input_names_) inputs[name] = arena_.take(name);
  Tensors results = compute_(inputs);
  for (const std::string& name : output_names_) {
    const Tensor& result = get(results, name);
    const Rows rows = rows_of(problem_, name, result.shape());
    const std::size_t bytes = static_cast<std::size_t>(rows.width) * size_of(result.dtype());
    for (const Series& s : rows.series)
      for (std::int64_t i = 0; i < s.count; ++i) {
        const auto at = static_cast<std::size_t>(s.first + i * s.stride) * bytes;
        std::memcpy(arena_.image().data() + arena_.offset(name) + at, result.data() + at, bytes);
      }
    results.erase(name);
  }
  taps_ = std::move(results);
}

Tensors ArenaPlan::outputs() const {
  Tensors outputs = taps_;
  for (const std::string& name : output_names_) outputs[name] = arena_.take(name);
  return outputs;
}

}  // namespace deltagauge::validate
