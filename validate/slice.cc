#include "validate/slice.h"

#include <algorithm>
#include <cstring>
#include <random>

#include "core/error.h"
#include "core/op.h"

namespace deltagauge::validate {
namespace {

std::int64_t heads(const Problem& p) { return std::max(p.HK, p.HV); }

// Where the part's index along dimension d starts in the whole tensor.
std::int64_t start_of(const Problem& whole, const Part& part, const TensorSpec& spec, std::size_t d) {
  if (static_cast<int>(d) == spec.token_dim) return whole.offsets()[static_cast<std::size_t>(part.sequence)];
  if (d == 0 && spec.shape.size() == 4) {  // a state: [N, HV, V, K], or the slot and the one before it of a pool
    if (!whole.slots) return part.sequence;
    return std::max<std::int64_t>(whole.state_indices()[static_cast<std::size_t>(part.sequence)], 1) - 1;
  }
  if (spec.name == "state_indices" || spec.name == "has_initial_state") return part.sequence;
  return part.head * spec.shape[d] / heads(whole);  // of HK or HV heads
}

// Where the part starts along each dimension.
std::vector<std::int64_t> start_of(const Problem& whole, const Part& part, const TensorSpec& from, const TensorSpec& to) {
  std::vector<std::int64_t> start(to.shape.size(), 0);
  for (std::size_t d = 0; d < start.size(); ++d)
    if (from.shape[d] != to.shape[d]) start[d] = start_of(whole, part, from, d);
  return start;
}

// Packed rows: of every section the channels of the part's head.
Tensor cut_sections(const Problem& whole, const Part& part, const TensorSpec& from, const TensorSpec& to,
                    const Tensor& tensor) {
  Tensor out(to.dtype, to.shape);
  const std::size_t item = size_of(to.dtype);
  std::int64_t source = part.sequence * from.shape[1], target = 0;
  for (std::size_t s = 0; s < to.sections.size(); ++s) {
    const auto [heads, width] = from.sections[s];
    const std::int64_t first = source + part.head * heads / whole.HV * width;
    std::memcpy(out.data() + static_cast<std::size_t>(target) * item, tensor.data() + static_cast<std::size_t>(first) * item,
                static_cast<std::size_t>(width) * item);
    source += heads * width;
    target += width;
  }
  return out;
}

Tensor cut(const Problem& whole, const Part& part, const TensorSpec& from, const TensorSpec& to, const Tensor& tensor) {
  if (tensor.shape() != from.shape || !tensor.contiguous())
    fail(from.name, ": expected contiguous ", to_string(from.shape), ", got ", to_string(tensor.shape()));
  if (!from.sections.empty()) return cut_sections(whole, part, from, to, tensor);
  Tensor out(to.dtype, to.shape);
  if (out.empty()) return out;
  const std::size_t rank = to.shape.size();
  const std::vector<std::int64_t> start = start_of(whole, part, from, to);
  std::vector<std::int64_t> index(rank, 0);
  const std::size_t item = out.nbytes() / static_cast<std::size_t>(out.numel());
  const std::int64_t run = to.shape[rank - 1];
  for (std::int64_t at = 0; at < out.numel(); at += run) {
    for (std::size_t d = rank - 1, rest = static_cast<std::size_t>(at / run); d-- > 0;) {
      const auto size = static_cast<std::size_t>(to.shape[d]);
      index[d] = start[d] + static_cast<std::int64_t>(rest % size);
      rest /= size;
    }
    index[rank - 1] = start[rank - 1];
    const auto source = static_cast<std::size_t>(tensor.offset_of(index));
    std::memcpy(out.data() + static_cast<std::size_t>(at) * item, tensor.data() + source * item,
                static_cast<std::size_t>(run) * item);
  }
  return out;
}

using Specs = std::vector<TensorSpec> (*)(const Problem&);

Tensors cut_all(const Problem& whole, const Part& part, Specs specs, const Tensors& tensors) {
  const Problem small = part_problem(whole, part);
  const auto from = specs(whole), to = specs(small);
  Tensors out;
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].name == "cu_seqlens") {
      Tensor& ends = out[from[i].name] = Tensor(DType::i32, {2});
      ends.store(1, static_cast<double>(small.tokens()));
    } else if (from[i].name == "state_indices") {
      (out[from[i].name] = Tensor(DType::i32, {1})).store(0, static_cast<double>(small.state_indices()[0]));
    } else {
      out[from[i].name] = cut(whole, part, from[i], to[i], get(tensors, from[i].name));
    }
  }
  return out;
}

}  // namespace

Problem part_problem(const Problem& whole, const Part& part) {
  Problem p = whole;
  p.lengths = {whole.lengths.at(static_cast<std::size_t>(part.sequence))};
  p.ids.clear();
  if (whole.slots) {
    const auto n = static_cast<std::size_t>(part.sequence);
    const std::int64_t slot = whole.state_indices()[n];
    p.slots = 2;
    p.slot_pad = 0;
    p.idx = std::to_string(std::min<std::int64_t>(slot, 1));
    p.has = whole.has_initial_state()[n] ? "1" : "0";
  }
  p.capacity = 0;
  p.HK = 1;
  p.HV = 1;
  return p;
}

Tensors part_inputs(const Problem& whole, const Part& part, const Tensors& inputs) {
  return cut_all(whole, part, op_info(whole.op).inputs, inputs);
}

Tensors part_outputs(const Problem& whole, const Part& part, const Tensors& outputs) {
  return cut_all(whole, part, op_info(whole.op).outputs, outputs);
}

std::vector<std::int64_t> whole_index(const Problem& whole, const Part& part, std::string_view output,
                                      std::vector<std::int64_t> index) {
  const auto from = op_info(whole.op).outputs(whole), to = op_info(whole.op).outputs(part_problem(whole, part));
  for (std::size_t i = 0; i < from.size(); ++i) {
    if (from[i].name != output) continue;
    const auto start = start_of(whole, part, from[i], to[i]);
    for (std::size_t d = 0; d < index.size(); ++d) index[d] += start[d];
  }
  return index;
}

std::vector<Part> choose_parts(const Problem& whole, std::uint64_t seed, std::int64_t token_heads) {
  std::vector<Part> order;
  for (std::int64_t n = 0; n < whole.sequences(); ++n)
    for (std::int64_t h = 0; h < heads(whole); ++h)
      if (whole.lengths[static_cast<std::size_t>(n)] > 0) order.push_back({n, h});
  if (order.size() > 2) {
    std::swap(order[1], order.back());
    std::mt19937_64 random(seed);  // the draw is part of the case, not of this run; its sequence is fixed by the standard
    for (std::size_t i = order.size() - 1; i > 2; --i) std::swap(order[i], order[2 + random() % (i - 1)]);
  }
  std::vector<Part> parts;
  for (const Part& part : order) {
    const std::int64_t tokens = whole.lengths[static_cast<std::size_t>(part.sequence)];
    if (!parts.empty() && tokens > token_heads) continue;
    parts.push_back(part);
    token_heads -= tokens;
  }
  return parts;
}

}  // namespace deltagauge::validate
