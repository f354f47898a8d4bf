// gdn: the gated delta rule, docs/math.md#gdn. Per sequence and value head, S [V, K]:
//   D_t = exp(g_t) S_{t-1};  u_t = beta_t (v_t - D_t k_t);  S_t = D_t + u_t k_t^T;  o_t = scale S_t q_t
// With raw_gate=on g is what the gate op makes of raw_gate, per head.
#include "core/ops/ops.h"

namespace deltagauge {
namespace {

std::vector<TensorSpec> inputs(const Problem& p) {
  const std::int64_t T = p.rows(), N = p.sequences();
  std::vector<TensorSpec> specs{{"q", p.io, {T, p.HK, p.K}, 0},
                                {"k", p.io, {T, p.HK, p.K}, 0},
                                {"v", p.io, {T, p.HV, p.V}, 0},
                                {p.raw_gate == Switch::on ? "raw_gate" : "g", p.gate_dtype, {T, p.HV}, 0},
                                {"beta", p.beta_dtype, {T, p.HV}, 0}};
  if (p.raw_gate == Switch::on) {
    if (p.a_log == Switch::on) specs.push_back({"A_log", DType::f32, {p.HV}});
    specs.push_back({"dt_bias", DType::f32, {p.HV}});
  }
  if (p.h0.kind != "none") specs.push_back({"initial_state", p.state, {p.slots ? p.slots : N, p.HV, p.V, p.K}});
  if (p.slots) {
    specs.push_back({"state_indices", DType::i32, {N}});
    specs.push_back({"has_initial_state", DType::boolean, {N}});
  }
  if (p.layout == Layout::packed) specs.push_back({"cu_seqlens", DType::i32, {N + 1}});
  return specs;
}

std::vector<TensorSpec> outputs(const Problem& p) {
  std::vector<TensorSpec> specs{{"o", p.io, {p.rows(), p.HV, p.V}, 0}};
  if (p.slots)
    specs.push_back({"final_state", p.state, {p.slots, p.HV, p.V, p.K}, -1, "initial_state"});
  else if (p.final_state == Switch::on)
    specs.push_back({"final_state", p.state, {p.sequences(), p.HV, p.V, p.K}});
  return specs;
}

// Of the chunk form with C = 64 in residual form: K K^T, Q K^T, K S, Ainv r, Q S, P v_new, S += K^T v_new, whole squares.
double flops(const Problem& p) {
  const double K = static_cast<double>(p.K), V = static_cast<double>(p.V), C = 64;
  return static_cast<double>(p.tokens() * p.HV) * (6 * K * V + 4 * C * (K + V));
}

double bytes(const Problem& p) {
  const double all = touched_bytes(p, inputs(p)) + touched_bytes(p, outputs(p));
  if (!p.slots) return all;
  const double slot = static_cast<double>(p.HV * p.V * p.K) * static_cast<double>(size_of(p.state));
  return all - 2 * slot * static_cast<double>(p.slots) + pool_bytes(p);
}

}  // namespace

const OpInfo kOpGdn{"gdn", "gated delta rule: scalar decay per value head, delta write, read", inputs, outputs, flops,
                    bytes};

}  // namespace deltagauge
