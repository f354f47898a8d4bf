// One token a sequence on a state pool: packed_qkv [B, 2 HK K + HV V], raw_gate, raw_beta [B, HV], A_log, dt_bias [HV],
// initial_state [P, HV, V, K] -> o [B, HV, V], final_state. q and k are normalised, alpha = exp(-exp(A_log)
// softplus(raw_gate + dt_bias)), beta = sigmoid(raw_beta) or twice that; then one step of the recurrence. Nothing is rounded
// in between.
#pragma once
#include <algorithm>
#include <cmath>

#include "oracle/gate.h"
#include "oracle/l2norm.h"
#include "oracle/recurrence.h"

namespace deltagauge::oracle {

// What the value rows of sequence n and value head h share.
template <class Real>
Tile<Real> decode_tile(const Call& call, std::int64_t n, std::int64_t h) {
  using std::exp;
  const Problem& p = call.problem;
  const Tensor& packed = get(call.inputs, "packed_qkv");
  const auto key = [&](std::int64_t section) {
    std::vector<double> row(static_cast<std::size_t>(p.K));
    std::vector<Real> unit(row.size());
    read_row(packed, n * packed.dim(1) + (section * p.HK + h / (p.HV / p.HK)) * p.K, 1, p.K, row.data());
    vectorised<Real>([&] { normalise(row.data(), p.K, unit.data()); });
    return unit;
  };
  Tile<Real> tile{.tokens = 1, .K = p.K, .q = key(0), .k = key(1), .alpha = {}, .beta = {}};
  tile.scale = Real(static_cast<double>(static_cast<float>(p.q_scale())));
  vectorised<Real>([&] {
    const Real a = exp(Real(get(call.inputs, "A_log").at({h})));
    const Real g = softplus_gate(get(call.inputs, "raw_gate").at({n, h}), get(call.inputs, "dt_bias").at({h}), a);
    const double approximate = static_cast<double>(g);
    tile.alpha.push_back(approximate == 0 ? Real(1.0) : std::isinf(approximate) ? Real(0.0) : Real(exp(g)));
    const Real beta = sigmoid(Real(get(call.inputs, "raw_beta").at({n, h})));
    tile.beta.push_back(p.neg_eigval == Switch::on ? Real(beta + beta) : beta);
  });
  return tile;
}

template <class Real>
void gdn_decode_head(const Call& call, const Sequence& s, std::int64_t h, Answer& answer) {
  using Block = Rows<Real>;
  const Problem& p = call.problem;
  double* o = answer.outputs.find("o")->second.as<double>().data() + (s.first * p.HV + h) * p.V;
  const auto columns = sampled_columns(p.V, call.options.value_columns);
  if (s.slot <= 0) {  // without a slot: zero, and nothing else
    for (const std::int64_t c : columns) o[c] = 0;
    return;
  }
  const Tile<Real> tile = decode_tile<Real>(call, s.first, h);
  const std::int64_t state = (s.slot * p.HV + h) * p.V * p.K;
  const Tensor &pool = get(call.inputs, "initial_state"), &packed = get(call.inputs, "packed_qkv");
  double* final_state = answer.outputs.find("final_state")->second.as<double>().data() + state;
  std::vector<double> v(static_cast<std::size_t>(p.V)), row(static_cast<std::size_t>(p.K));
  read_row(packed, s.first * packed.dim(1) + 2 * p.HK * p.K + h * p.V, 1, p.V, v.data());
  std::vector<Block> S(row.size());
  for (std::size_t first = 0; first < columns.size(); first += Block::kRows) {
    const std::size_t count = std::min<std::size_t>(Block::kRows, columns.size() - first);
    Block in{}, written{}, read{};
    std::ranges::fill(S, Block{});
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t c = columns[first + i];
      in.set(static_cast<int>(i), Real(v[static_cast<std::size_t>(c)]));
      if (!s.has_state) continue;
      read_row(pool, state + c * p.K, 1, p.K, row.data());
      for (std::size_t j = 0; j < row.size(); ++j) S[j].set(static_cast<int>(i), Real(row[j]));
    }
    vectorised<Real>([&] { advance<Real, kGdn>(tile, S.data(), &in, &written, &read); });
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t c = columns[first + i];
      o[c] = static_cast<double>(read.get(static_cast<int>(i)));
      for (std::int64_t j = 0; j < p.K; ++j)
        final_state[c * p.K + j] = static_cast<double>(S[static_cast<std::size_t>(j)].get(static_cast<int>(i)));
    }
  }
}

template <class Real>
void gdn_decode(const Call& call, Answer& answer) {
  const Problem& p = call.problem;
  const std::vector<Sequence> all = sequences(p);
#pragma omp parallel for schedule(dynamic) if (p.tokens() * p.HV * p.V * p.K > kWorthThreads)
  for (std::int64_t item = 0; item < p.sequences() * p.HV; ++item)
    gdn_decode_head<Real>(call, all[static_cast<std::size_t>(item / p.HV)], item % p.HV, answer);
}

extern template void gdn_decode<double>(const Call&, Answer&);  // gdn_decode.cc
extern template void gdn_decode<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
