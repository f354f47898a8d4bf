// gdn_decode: one token a sequence through gdn with what stands before it, docs/math.md#gdn_decode. Row n of packed_qkv
// holds [q, HK heads of K | k, HK heads of K | v, HV heads of V] of sequence n, whose state is a slot of the pool:
//   q, k normalised;  g = -exp(A_log) softplus(raw_gate + dt_bias);  beta = sigmoid(raw_beta), or twice that
//   D = exp(g) S;  u = beta (v - D k);  S' = D + u k^T;  o = scale S' q
#include "core/ops/ops.h"

namespace deltagauge {
namespace {

std::vector<TensorSpec> inputs(const Problem& p) {
  const std::int64_t T = p.rows(), N = p.sequences();
  const std::vector<Section> qkv{{p.HK, p.K}, {p.HK, p.K}, {p.HV, p.V}};
  return {{"packed_qkv", p.io, {T, 2 * p.HK * p.K + p.HV * p.V}, 0, {}, qkv},
          {"raw_gate", p.gate_dtype, {T, p.HV}, 0},
          {"raw_beta", p.beta_dtype, {T, p.HV}, 0},
          {"A_log", DType::f32, {p.HV}},
          {"dt_bias", DType::f32, {p.HV}},
          {"initial_state", p.state, {p.slots, p.HV, p.V, p.K}},
          {"state_indices", DType::i32, {N}},
          {"has_initial_state", DType::boolean, {N}}};
}

std::vector<TensorSpec> outputs(const Problem& p) {
  return {{"o", p.io, {p.rows(), p.HV, p.V}, 0}, {"final_state", p.state, {p.slots, p.HV, p.V, p.K}, -1, "initial_state"}};
}

// S k and S q, two a multiply-add; the decay and the write, three an element.
double flops(const Problem& p) { return 7 * static_cast<double>(p.tokens() * p.HV) * static_cast<double>(p.K * p.V); }

double bytes(const Problem& p) {
  std::vector<TensorSpec> rest;
  for (const auto& specs : {inputs(p), outputs(p)})
    for (const TensorSpec& spec : specs)
      if (spec.shape.size() != 4) rest.push_back(spec);  // all but the pool
  return touched_bytes(p, rest) + pool_bytes(p);
}

}  // namespace

const OpInfo kOpGdnDecode{"gdn_decode", "gdn for one token a sequence on a state pool: l2norm, gate, beta, recurrence, read",
                          inputs,       outputs,
                          flops,        bytes,
                          true};

}  // namespace deltagauge
