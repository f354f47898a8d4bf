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
// quiet NaN: nothing may read them. Throws Error when the recurrence itself would diverge (beta |k|^2 > 2 without decay)
// and the case does not say diverge=on; the message gives token, head and value.
Tensors make_inputs(const Case& c);

// The named distributions of an axis, for list regimes and error messages.
struct RegimeInfo {
  std::string_view axis, name, meaning;
};
std::span<const RegimeInfo> regimes();

}  // namespace deltagauge
