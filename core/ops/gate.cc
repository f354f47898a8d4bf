// gate: raw gate projection to natural-log decay, docs/math.md#gate. y = raw_gate + dt_bias, a = exp(A_log)
//   softplus: g = -a softplus(y)          bounded: g = lower_bound sigmoid(a y)
// per head: raw_gate, g [T, HV], dt_bias [HV]; per channel: raw_gate, g [T, HV, K], dt_bias [HV, K]; A_log [HV].
#include "core/ops/ops.h"

namespace deltagauge {
namespace {

Shape gate_shape(const Problem& p) { return p.per == "channel" ? Shape{p.rows(), p.HV, p.K} : Shape{p.rows(), p.HV}; }

std::vector<TensorSpec> inputs(const Problem& p) {
  std::vector<TensorSpec> specs{{"raw_gate", p.io, gate_shape(p), 0}};
  if (p.a_log == Switch::on) specs.push_back({"A_log", DType::f32, {p.HV}});
  specs.push_back({"dt_bias", DType::f32, p.per == "channel" ? Shape{p.HV, p.K} : Shape{p.HV}});
  if (p.layout == Layout::packed) specs.push_back({"cu_seqlens", DType::i32, {p.sequences() + 1}});
  return specs;
}
std::vector<TensorSpec> outputs(const Problem& p) { return {{"g", DType::f32, gate_shape(p), 0}}; }
double flops(const Problem& p) {
  return 8 * static_cast<double>(p.tokens() * p.HV) * static_cast<double>(p.per == "channel" ? p.K : 1);
}
double bytes(const Problem& p) { return touched_bytes(p, inputs(p)) + touched_bytes(p, outputs(p)); }

}  // namespace

const OpInfo kOpGate{"gate", "gate transform: raw projection to natural-log decay", inputs, outputs, flops, bytes};

}  // namespace deltagauge
