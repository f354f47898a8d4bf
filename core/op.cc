#include "core/op.h"

#include "core/error.h"
#include "core/ops/ops.h"

namespace deltagauge {

std::span<const OpInfo> ops() {
  static const OpInfo kOps[] = {kOpGdn, kOpGdnDecode, kOpL2norm, kOpGate};
  return kOps;
}

const OpInfo& op_info(std::string_view name) {
  std::string known;
  for (const OpInfo& op : ops()) {
    if (op.name == name) return op;
    known += " " + std::string(op.name);
  }
  fail("op: expected one of", known, ", got '", name, "'");
}

double pool_bytes(const Problem& p) {
  const double state = static_cast<double>(p.HV * p.V * p.K) * static_cast<double>(size_of(p.state));
  const auto slots = p.state_indices();
  const auto has = p.has_initial_state();
  double touched = 0;
  for (std::size_t n = 0; n < slots.size(); ++n)
    if (slots[n] > 0) touched += has[n] ? 2 : 1;
  return touched * state;
}

double touched_bytes(const Problem& problem, const std::vector<TensorSpec>& specs) {
  double bytes = 0;
  for (const TensorSpec& spec : specs) {
    double elements = 1;
    for (std::size_t d = 0; d < spec.shape.size(); ++d)
      elements *= static_cast<double>(static_cast<int>(d) == spec.token_dim ? problem.tokens() : spec.shape[d]);
    bytes += elements * static_cast<double>(size_of(spec.dtype));
  }
  return bytes;
}

}  // namespace deltagauge
