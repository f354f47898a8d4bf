// The operations, one OpInfo each: op X is defined in core/ops/X.cc. Only core/op.cc reads this.
#pragma once
#include "core/op.h"

namespace deltagauge {

extern const OpInfo kOpGdn;
extern const OpInfo kOpGdnDecode;
extern const OpInfo kOpL2norm;
extern const OpInfo kOpGate;

// Bytes that a call moves in the states of a pool: of its sequences' slots, read where has_initial_state says so.
double pool_bytes(const Problem& problem);
// Bytes of one pass over the tensors a spec list names: active token rows only where a tensor has them.
double touched_bytes(const Problem& problem, const std::vector<TensorSpec>& specs);

}  // namespace deltagauge
