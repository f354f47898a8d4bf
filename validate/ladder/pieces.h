// Pieces: spans of tokens of a case's sequences, put together as another case of the same op: the batch in another order, a
// part of it, one sequence alone, the first tokens of each. The tensors of the case follow.
#pragma once
#include <cstdint>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::validate {

struct Piece {
  std::int64_t sequence = 0, first = 0, count = 0;  // tokens [first, first + count) of the sequence at that place
};
using Pieces = std::vector<Piece>;

Piece whole_sequence(const Problem& problem, std::int64_t sequence);
Pieces whole_sequences(const Problem& problem);  // each, in order

// One sequence a piece, which keeps its name for the input generator. No rows past the end; packed where a dense case comes
// to have unequal lengths.
Problem pieces_problem(const Problem& whole, const Pieces& pieces);

// The inputs of `small`, a pieces_problem or one with the same lengths, out of those of the whole: rows of tokens and what
// is one a sequence by piece, cu_seqlens anew, the rest as it is. Rows past the end are 0. What the whole has not is left
// out.
Tensors pieces_inputs(const Problem& whole, const Pieces& pieces, const Problem& small, const Tensors& inputs);

}  // namespace deltagauge::validate
