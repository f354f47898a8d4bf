// One (sequence, value head) of a case, cut out with its values. The ops of this project treat these independently, so a
// shape too large for the oracle is judged on some of them, each by exactly what judges a small case.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::validate {

struct Part {
  std::int64_t sequence = 0, head = 0;  // head: of max(HK, HV); its key head follows
  friend bool operator==(const Part&, const Part&) = default;
};

// The problem of one part alone: one sequence, one head, no rows behind it.
Problem part_problem(const Problem& whole, const Part& part);
// Its share of the whole case's inputs or outputs, by the op's specs. Throws Error when a tensor has another shape.
Tensors part_inputs(const Problem& whole, const Part& part, const Tensors& inputs);
Tensors part_outputs(const Problem& whole, const Part& part, const Tensors& outputs);

// Where an element of an output of the part is in the whole case.
std::vector<std::int64_t> whole_index(const Problem& whole, const Part& part, std::string_view output,
                                      std::vector<std::int64_t> index);

// Parts that together stay within a number of (token, head) pairs: the first and the last corner, then others drawn by
// seed; every part when they all fit. Always at least one with tokens, if there is any.
std::vector<Part> choose_parts(const Problem& whole, std::uint64_t seed, std::int64_t token_heads);

}  // namespace deltagauge::validate
