// Yardsticks of a case's outputs from any emulation, for checks that hold a backend against another staging, or another math
// mode, than the case itself asks for.
#pragma once
#include <map>
#include <string>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/staging.h"
#include "validate/context.h"
#include "validate/judge.h"

namespace deltagauge::validate {

using Yardsticks = std::map<std::string, Yardstick>;  // by output

// Budgets that the emulation `as` earns against gold (outputs in f64, which must outlive the result). declared: the staging
// whose floor and units apply.
Yardsticks yardsticks_of(const Problem& problem, const Tensors& inputs, const Tensors& gold,
                         const reference::Staging& declared, const reference::Staging& as);

// The budget of a backend that declares this staging, as validate gives it.
Yardsticks own_yardsticks(const Problem& problem, const Tensors& inputs, const Tensors& gold,
                          const reference::Staging& declared);
// The same without range limits (reference::without_range_limits): an emulator that overflows or flushes earns nothing by
// it.
Yardsticks wide_yardsticks(const Problem& problem, const Tensors& inputs, const Tensors& gold,
                           const reference::Staging& declared);

// Judges every output by its yardstick; its metrics are filed under its name + suffix.
void judge_all(const Tensors& got, const Yardsticks& yardsticks, const std::string& suffix, Verdict& verdict);

}  // namespace deltagauge::validate
