#include "validate/ladder/pieces.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <string_view>

#include "core/op.h"

namespace deltagauge::validate {
namespace {

struct Span {
  std::int64_t first, count;
};

// Those rows of a tensor one after the other, then zeros up to `total`.
Tensor gathered(const Tensor& tensor, const std::vector<Span>& spans, std::int64_t total) {
  Shape shape = tensor.shape();
  shape[0] = total;
  Tensor out(tensor.dtype(), shape);
  std::size_t at = 0;
  for (const Span& span : spans) {
    const Tensor part = rows(tensor, span.first, span.count);
    if (part.nbytes()) std::memcpy(out.data() + at, part.data(), part.nbytes());
    at += part.nbytes();
  }
  return out;
}

// Whether dimension 0 counts sequences. The states of a pool stay in their slots, which go by the names of the sequences.
bool by_sequence(const Problem& p, std::string_view tensor) {
  if (tensor == "initial_state") return p.slots == 0;
  return tensor == "state_indices" || tensor == "has_initial_state";
}

}  // namespace

Piece whole_sequence(const Problem& problem, std::int64_t sequence) {
  return {sequence, 0, problem.lengths.at(static_cast<std::size_t>(sequence))};
}

Pieces whole_sequences(const Problem& problem) {
  Pieces pieces;
  for (std::int64_t n = 0; n < problem.sequences(); ++n) pieces.push_back(whole_sequence(problem, n));
  return pieces;
}

Problem pieces_problem(const Problem& whole, const Pieces& pieces) {
  Problem small = whole;
  small.lengths.clear();
  small.ids.clear();
  small.capacity = 0;
  for (const Piece& piece : pieces) {
    small.lengths.push_back(piece.count);
    small.ids.push_back(whole.ids.empty() ? piece.sequence : whole.ids[static_cast<std::size_t>(piece.sequence)]);
  }
  if (std::adjacent_find(small.lengths.begin(), small.lengths.end(), std::not_equal_to<>()) != small.lengths.end())
    small.layout = Layout::packed;
  return small;
}

Tensors pieces_inputs(const Problem& whole, const Pieces& pieces, const Problem& small, const Tensors& inputs) {
  std::vector<Span> tokens, sequences;
  const auto offsets = whole.offsets(), ends = small.offsets();
  for (const Piece& piece : pieces) {
    tokens.push_back({offsets[static_cast<std::size_t>(piece.sequence)] + piece.first, piece.count});
    sequences.push_back({piece.sequence, 1});
  }
  Tensors out;
  for (const TensorSpec& spec : op_info(small.op).inputs(small)) {
    if (spec.name == "cu_seqlens") {
      Tensor& cu = out[spec.name] = Tensor(spec.dtype, spec.shape);
      for (std::size_t i = 0; i < ends.size(); ++i) cu.store(static_cast<std::int64_t>(i), static_cast<double>(ends[i]));
    } else if (const Tensor* tensor = find(inputs, spec.name)) {
      if (spec.token_dim == 0)
        out[spec.name] = gathered(*tensor, tokens, small.rows());
      else
        out[spec.name] = by_sequence(small, spec.name) ? gathered(*tensor, sequences, small.sequences()) : *tensor;
    }
  }
  return out;
}

}  // namespace deltagauge::validate
