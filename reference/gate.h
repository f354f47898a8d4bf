// Gate transform in f32, rounded after every operation. y = raw_gate + dt_bias, a = exp(A_log), A_log absent: a = 1
//   softplus: g = -a (max(y, 0) + log1p(t)), t = exp(-|y|)
//   bounded:  z = a y, t = exp(-|z|), g = lower_bound / (1 + t), with lower_bound t above for z < 0
// exp(A_log) may pass the largest f32 where a times something does not: its root is then taken twice.
// math = fast: exp(x) is 2^RN(x log2 e), and log1p(t) the series of 2 atanh(t / (2 + t)). a is precise in either mode.
#pragma once
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::reference {

// a = exp(A_log). It may be infinite where a y is not, and a 0 is 0.
struct Rate {
  float a = 1, A_log = 0;
};
Rate rate_of(float A_log);

float softplus_gate(MathMode math, float y, const Rate& rate);
float sigmoid(MathMode math, float z);  // 1 / (1 + t), or t / (1 + t) for z < 0, with t = exp(-|z|)

// The log decays of gdn, [T, HV]: g, or what raw_gate becomes, as f32 has it or in f64. Past the active end as they stand.
template <class Real>
std::vector<double> log_decays(const Problem& problem, const Tensors& inputs);

// raw_gate [T, HV] or [T, HV, K] -> g, f32. Rows past the active end are NaN.
Tensors gate(const Problem& problem, const Tensors& inputs);

}  // namespace deltagauge::reference
