#include "oracle/call.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "core/op.h"

namespace deltagauge::oracle {
namespace {

template <class T, class Decode>
void read_as(const Tensor& tensor, std::int64_t offset, std::int64_t stride, std::int64_t n, double* out, Decode decode) {
  const T* at = tensor.as<T>().data() + offset;
  if (stride == 1) {
    for (std::int64_t i = 0; i < n; ++i) out[i] = decode(at[i]);
  } else {
    for (std::int64_t i = 0; i < n; ++i) out[i] = decode(at[i * stride]);
  }
}

// No answer yet: NaN everywhere.
void clear(Tensor& t) {
  const auto values = t.as<double>();
  const auto count = static_cast<std::int64_t>(values.size());
#pragma omp parallel for if (count > 65536)
  for (std::int64_t i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

std::vector<Sequence> sequences(const Problem& problem) {
  std::vector<Sequence> all;
  Sequence s;
  const auto slots = problem.state_indices();
  const auto has = problem.has_initial_state();
  for (const std::int64_t length : problem.lengths) {
    s.end = s.first + length;
    if (const auto n = static_cast<std::size_t>(s.n); n < slots.size()) s.slot = slots[n], s.has_state = has[n];
    all.push_back(s);
    ++s.n;
    s.first = s.end;
    s.chunk += (length + problem.chunk - 1) / problem.chunk;
  }
  return all;
}

std::int64_t chunk_count(const Problem& problem) {
  std::int64_t count = 0;
  for (const std::int64_t length : problem.lengths) count += (length + problem.chunk - 1) / problem.chunk;
  return count;
}

void read_row(const Tensor& tensor, std::int64_t offset, std::int64_t stride, std::int64_t n, double* out) {
  switch (tensor.dtype()) {
    case DType::bf16:  // the upper half of an f32: a shift, several times the speed of a field-by-field decode
      return read_as<Bf16>(tensor, offset, stride, n, out,
                           [](Bf16 h) { return static_cast<double>(std::bit_cast<float>(std::uint32_t{h.bits} << 16)); });
    case DType::f32:
      return read_as<float>(tensor, offset, stride, n, out, [](float x) { return static_cast<double>(x); });
    default:
      for (std::int64_t i = 0; i < n; ++i) out[i] = tensor.load(offset + i * stride);
  }
}

std::vector<std::int64_t> sampled_columns(std::int64_t V, std::int64_t count) {
  if (count <= 0 || count > V) count = V;
  std::vector<std::int64_t> columns;
  for (std::int64_t i = 0; i < count; ++i) columns.push_back(i * V / count);
  return columns;
}

Tensor unanswered(Shape shape) {
  Tensor t(DType::f64, std::move(shape));
  clear(t);
  return t;
}

Tensors unanswered_outputs(const Problem& problem) {
  const std::vector<TensorSpec> specs = op_info(problem.op).outputs(problem);
  std::vector<Tensor> tensors(specs.size());
#pragma omp parallel for if (specs.size() > 1)  // their zeros are written on one thread each
  for (std::size_t i = 0; i < specs.size(); ++i) tensors[i] = Tensor(DType::f64, specs[i].shape);
  Tensors outputs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    clear(tensors[i]);
    outputs[specs[i].name] = std::move(tensors[i]);
  }
  return outputs;
}

}  // namespace deltagauge::oracle
