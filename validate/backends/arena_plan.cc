#include "validate/backends/arena_plan.h"

#include <cstring>

#include "core/op.h"
#include "validate/rows.h"

namespace deltagauge::validate {
namespace {

// The output that an input becomes in place, or null.
const TensorSpec* becomes(const std::vector<TensorSpec>& outputs, std::string_view input) {
  for (const TensorSpec& spec : outputs)
    if (spec.in_place_of == input) return &spec;
  return nullptr;
}

// The slots (dimension 0) of a tensor, each contiguous, to where they are in another one.
void copy_slots(const Tensor& from, Tensor& to) {
  const std::int64_t slots = from.dim(0);
  const std::size_t element = size_of(from.dtype());
  for (std::int64_t i = 0; i < slots; ++i)
    std::memcpy(to.data() + static_cast<std::size_t>(i * to.strides()[0]) * element,
                from.data() + static_cast<std::size_t>(i * from.strides()[0]) * element,
                static_cast<std::size_t>(from.numel() / slots) * element);
}

// The pool with its slots as far apart as the problem says.
Tensor padded(const Problem& problem, const Tensor& tensor) {
  Shape strides = contiguous_strides(tensor.shape());
  strides[0] += problem.slot_pad;
  Tensor out = Tensor::strided(tensor.dtype(), tensor.shape(), strides);
  copy_slots(tensor, out);
  return out;
}

Tensor contiguous(Tensor tensor) {
  if (tensor.contiguous()) return tensor;
  Tensor out(tensor.dtype(), tensor.shape());
  copy_slots(tensor, out);
  return out;
}

}  // namespace

void add_tensors(Arena& arena, const Problem& problem, const Tensors& inputs) {
  const OpInfo& op = op_info(problem.op);
  const auto outputs = op.outputs(problem);
  for (const TensorSpec& spec : op.inputs(problem))
    if (!becomes(outputs, spec.name)) arena.add_input(spec.name, get(inputs, spec.name));
  for (const TensorSpec& spec : outputs) {
    if (spec.in_place_of.empty())
      arena.add_output(spec.name, spec.dtype, spec.shape);
    else
      arena.add_in_place(spec.name, padded(problem, get(inputs, spec.in_place_of)));
  }
}

void replace_inputs(Arena& arena, const Problem& problem, const Tensors& inputs) {
  const OpInfo& op = op_info(problem.op);
  const auto outputs = op.outputs(problem);
  for (const TensorSpec& spec : op.inputs(problem)) {
    const Tensor& tensor = get(inputs, spec.name);
    const TensorSpec* output = becomes(outputs, spec.name);
    arena.replace(output ? output->name : spec.name, output ? padded(problem, tensor) : tensor);
  }
}

std::string memory_of(const Problem& problem, std::string_view tensor) {
  const auto outputs = op_info(problem.op).outputs(problem);
  const TensorSpec* output = becomes(outputs, tensor);
  return output ? output->name : std::string(tensor);
}

Tensors inputs_in(const Arena& arena, const Problem& problem) {
  Tensors inputs;
  for (const TensorSpec& spec : op_info(problem.op).inputs(problem))
    inputs[spec.name] = contiguous(arena.take(memory_of(problem, spec.name)));
  return inputs;
}

Tensors outputs_in(const Arena& arena, const Problem& problem) {
  Tensors outputs;
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) outputs[spec.name] = contiguous(arena.take(spec.name));
  return outputs;
}

void put_rows(Arena& arena, const Problem& problem, std::string_view output, const Tensor& result) {
  const Rows rows = rows_of(problem, output, result.shape());
  const std::size_t bytes = static_cast<std::size_t>(rows.width) * size_of(result.dtype());
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t row = s.first + i * s.stride;
      arena.put(output, row * rows.width, result.data() + static_cast<std::size_t>(row) * bytes, bytes);
    }
}

ArenaPlan::ArenaPlan(const Problem& problem, const Tensors& inputs, const PlanOptions& options, Compute compute)
    : arena_(options.fill), problem_(problem), compute_(std::move(compute)) {
  add_tensors(arena_, problem, inputs);
}

void ArenaPlan::run() {
  arena_.reset();
  Tensors results = compute_(inputs_in(arena_, problem_));
  for (const TensorSpec& spec : op_info(problem_.op).outputs(problem_)) {
    put_rows(arena_, problem_, spec.name, get(results, spec.name));
    results.erase(spec.name);
  }
  taps_ = std::move(results);
}

Tensors ArenaPlan::outputs() const {
  Tensors outputs = outputs_in(arena_, problem_);
  outputs.insert(taps_.begin(), taps_.end());
  return outputs;
}

}  // namespace deltagauge::validate
