#include "reference/fault_edits.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "reference/gate.h"
#include "reference/gdn.h"
#include "reference/l2norm.h"

namespace deltagauge::reference {
namespace {

Tensor& tensor(Tensors& tensors, std::string_view name) { return tensors.find(name)->second; }

void transpose_states(Tensor& t, const Problem& p) {
  if (p.K != p.V) return;  // the shapes would give it away
  const Tensor right = t;
  for (std::int64_t s = 0; s < p.sequences() * p.HV; ++s)
    for (std::int64_t i = 0; i < p.V; ++i)
      for (std::int64_t j = 0; j < p.K; ++j) t.store((s * p.V + i) * p.K + j, right.load((s * p.V + j) * p.K + i));
}
// Storage offset of the row that one-place faults hit: a middle token of the longest sequence, last head.
std::int64_t target_row(const Problem& p) {
  const auto n = static_cast<std::size_t>(std::max_element(p.lengths.begin(), p.lengths.end()) - p.lengths.begin());
  return ((p.offsets()[n] + p.lengths[n] / 2) * p.HV + p.HV - 1) * p.V;
}
// The column of a row whose magnitude is the median.
std::int64_t median_column(const Tensor& o, std::int64_t row, std::int64_t V) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(V));
  for (std::size_t c = 0; c < order.size(); ++c) order[c] = static_cast<std::int64_t>(c);
  const auto middle = order.begin() + V / 2;
  std::nth_element(order.begin(), middle, order.end(),
                   [&](std::int64_t a, std::int64_t b) { return std::fabs(o.load(row + a)) < std::fabs(o.load(row + b)); });
  return *middle;
}

}  // namespace

void plain_gate(Call& c) {
  Problem& p = c.problem;
  if (p.raw_gate == Switch::off) return;
  Tensor& g = c.inputs["g"] = Tensor(DType::f64, {p.rows(), p.HV});
  const std::vector<double> values = log_decays<float>(p, c.inputs);
  for (std::size_t i = 0; i < values.size(); ++i) g.store(static_cast<std::int64_t>(i), values[i]);
  p.raw_gate = Switch::off;
}
void natural_gate_to_base_2(Call& c) {
  plain_gate(c);
  Tensor& g = c.inputs["g"] = cast(get(c.inputs, "g"), DType::f64);
  for (std::int64_t i = 0; i < g.numel(); ++i) g.store(i, g.load(i) * std::log(2));
}
void gate_lags(Call& c) {
  plain_gate(c);
  Tensor& g = tensor(c.inputs, "g");
  for (std::int64_t i = c.problem.tokens() * c.problem.HV; i-- > c.problem.HV;) g.store(i, g.load(i - c.problem.HV));
}
void gate_of_head0(Call& c) {
  plain_gate(c);
  Tensor& g = tensor(c.inputs, "g");
  for (std::int64_t i = 0; i < g.numel(); ++i) g.store(i, g.load(i - i % c.problem.HV));
}
void no_initial_state(Call& c) { c.inputs.erase("initial_state"); }
void transpose_initial_state(Call& c) {
  if (c.inputs.contains("initial_state")) transpose_states(tensor(c.inputs, "initial_state"), c.problem);
}
void scale_missing(Call& c) { c.problem.scale = 1; }
void scale_twice(Call& c) { c.problem.scale = c.problem.q_scale() * c.problem.q_scale(); }
void beta_one_at_chunk_ends(Call& c) {
  Tensor& beta = tensor(c.inputs, "beta");
  for (std::int64_t n = 0; n < c.problem.sequences(); ++n)
    for (std::int64_t t = c.staging.chunk - 1; t < c.problem.lengths[static_cast<std::size_t>(n)]; t += c.staging.chunk)
      for (std::int64_t h = 0; h < c.problem.HV; ++h)
        beta.store((c.problem.offsets()[static_cast<std::size_t>(n)] + t) * c.problem.HV + h, 1);
}
void beta_bf16(Call& c) { c.inputs["beta"] = cast(get(c.inputs, "beta"), DType::bf16); }
void modulo_head_map(Call& c) {  // q and k spread to one head a value head, by the wrong map
  Problem& p = c.problem;
  for (const char* name : {"q", "k"}) {
    const Tensor x = get(c.inputs, name);
    Tensor spread(x.dtype(), {p.rows(), p.HV, p.K});
    for (std::int64_t i = 0; i < spread.numel(); ++i) {
      const std::int64_t row = i / (p.HV * p.K), h = i / p.K % p.HV;
      spread.store(i, x.load((row * p.HK + h % p.HK) * p.K + i % p.K));
    }
    c.inputs[name] = spread;
  }
  p.HK = p.HV;
}
void eps_on_mean(Call& c) {
  Problem& p = c.problem;
  for (const char* name : {"q", "k"}) {
    Tensor& x = tensor(c.inputs, name);
    for (std::int64_t row = 0; row < p.tokens() * p.HK; ++row) {
      std::vector<float> values(static_cast<std::size_t>(p.K));
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>(x.load(row * p.K + static_cast<std::int64_t>(i)));
      normalise_row(p.K, values.data(), p.io, kL2Eps * static_cast<double>(p.K));
      for (std::size_t i = 0; i < values.size(); ++i) x.store(row * p.K + static_cast<std::int64_t>(i), values[i]);
    }
  }
  p.l2norm = Switch::off;
}
void bias_missing(Call& c) {
  if (c.problem.raw_gate == Switch::off) return;
  Tensor& bias = tensor(c.inputs, "dt_bias");
  bias = Tensor(bias.dtype(), bias.shape());
}
void A_log_linear(Call& c) {
  const Problem p = c.problem;
  if (p.raw_gate == Switch::off || p.a_log == Switch::off) return;
  const Tensor A_log = get(c.inputs, "A_log");
  plain_gate(c);
  Tensor& g = tensor(c.inputs, "g");
  for (std::int64_t i = 0; i < p.tokens() * p.HV; ++i) {
    const double of = A_log.load(i % p.HV);
    g.store(i, g.load(i) / std::exp(of) * of);
  }
}
void other_transform(Call& c) { c.problem.transform = c.problem.transform == "bounded" ? "softplus" : "bounded"; }
void sequence_leak(Call& c) {
  Problem& p = c.problem;
  Problem asking = p;
  asking.final_state = Switch::on;
  const Tensors first = gdn_staged(asking, c.inputs, c.staging, false, nullptr);
  const Tensor* h0 = find(c.inputs, "initial_state");
  Tensor state = h0 ? *h0 : Tensor(p.state, {p.sequences(), p.HV, p.V, p.K});
  const std::int64_t size = p.HV * p.V * p.K;
  std::int64_t from = -1;
  for (std::int64_t n = 0; n < p.sequences(); ++n) {
    if (p.lengths[static_cast<std::size_t>(n)] == 0) continue;
    if (from >= 0) {
      for (std::int64_t i = 0; i < size; ++i) state.store(n * size + i, get(first, "final_state").load(from * size + i));
      break;
    }
    from = n;
  }
  c.inputs["initial_state"] = state;
}
void state_f16(Call& c) { c.staging.S = Store::f16; }
void doubling_f16(Call& c) { c.staging.solver = Solver::doubling16_f16; }
void doubling_bf16(Call& c) { c.staging.solver = Solver::doubling16_bf16; }
void doubling_f32(Call& c) { c.staging.solver = Solver::doubling_f32; }

void zero_row(const Problem& p, Tensors& out) {
  for (std::int64_t c = 0; c < p.V; ++c) tensor(out, "o").store(target_row(p) + c, 0);
}
void zero_output(const Problem& p, Tensors& out) {
  for (std::int64_t i = 0; i < p.tokens() * p.HV * p.V; ++i) tensor(out, "o").store(i, 0);
}
void sign_flipped(const Problem& p, Tensors& out) {
  Tensor& o = tensor(out, "o");
  const std::int64_t at = target_row(p) + median_column(o, target_row(p), p.V);
  o.store(at, -o.load(at));
}
void value_tile_missing(const Problem& p, Tensors& out) {
  for (std::int64_t c = std::max<std::int64_t>(0, p.V - 8); c < p.V; ++c) tensor(out, "o").store(target_row(p) + c, 0);
}
void transpose_final_state(const Problem& p, Tensors& out) {
  if (p.final_state == Switch::on) transpose_states(tensor(out, "final_state"), p);
}
void final_state_slot(const Problem& p, Tensors& out) {
  if (p.final_state == Switch::off) return;
  Tensor& state = tensor(out, "final_state");
  const Tensor right = state;
  for (std::int64_t i = 0; i < state.numel(); ++i) state.store((i + p.HV * p.V * p.K) % state.numel(), right.load(i));
}

}  // namespace deltagauge::reference
