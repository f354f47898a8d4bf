// Input tensors of a case. Every element is a function of (seed, tensor name, sequence id, token, head, channel) through
// Philox4x32-10, so a case cut to fewer sequences, tokens, heads or channels keeps the values of what remains (scaled by
// the same norms where a regime normalises over channels). Uses only + - * / sqrt, so the bits are the same on every
// machine.
#pragma once
#include <span>
#include <string_view>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge {

// All inputs of the op, as OpInfo::inputs names them, rounded to their dtypes. Rows at and past the active end are
// quiet NaN: nothing may read them. Throws Error when the case is malformed or too large (check_memory), Refused when
// refuse_inputs does.
Tensors make_inputs(const Case& c);

// Throws Refused, with tensor, index and value, for inputs without an answer to judge by: an active element that is NaN or
// infinite (but for g = -inf, and an infinite raw_gate, where the formulas of docs/math.md have a limit), a gate above 0,
// a beta below 0, and a recurrence that diverges by itself (beta |k|^2 > 2 without decay). diverge=on allows the last three.
void refuse_inputs(const Problem& problem, const Tensors& inputs);

// [T, HV] f64, the log decays of a gdn call: g, or what raw_gate becomes. For what looks at their size; the oracle and the
// reference have their own. Rows at and past the active end are NaN.
Tensor log_decays(const Problem& problem, const Tensors& inputs);

// Throws Error when the tensors of a call, inputs and outputs together, are larger than this machine's memory.
void check_memory(const Problem& problem);

// The named distributions of an axis, for list regimes and error messages.
struct RegimeInfo {
  std::string_view axis, name, meaning;
};
std::span<const RegimeInfo> regimes();

}  // namespace deltagauge
