// Gated delta rule: unpacks arguments and calls the recurrence for blocks of value rows. q, k [T, HK, K], v [T, HV, V],
// g (or raw_gate, gate.h), beta [T, HV], initial_state [N, HV, V, K] -> o [T, HV, V], final_state; value head h reads key
// head h / (HV / HK).
// exp(-inf) is exactly 0, exp(0) and exp(-0) exactly 1. scale is the f32 that a kernel gets. With l2norm on, q and k rows
// are normalised first, in the same precision.
#pragma once
#include <algorithm>
#include <cmath>
#include <span>

#include "oracle/gate.h"
#include "oracle/l2norm.h"
#include "oracle/recurrence.h"

namespace deltagauge::oracle {

template <class Real>
Real decay(const Real& g) {
  using std::exp;
  const double near = static_cast<double>(g);
  return std::isinf(near) && near < 0 ? Real(0.0) : near == 0 ? Real(1.0) : Real(exp(g));
}

// Rows of q or k: tokens [first, first + count) of one key head.
template <class Real>
void load_keys(const Call& call, const Tensor& x, std::int64_t first, std::int64_t count, std::int64_t key_head,
               std::vector<Real>& out) {
  const std::int64_t K = call.problem.K;
  std::vector<double> row(static_cast<std::size_t>(K));
  out.resize(static_cast<std::size_t>(count * K));
  Real* to = out.data();
  for (std::int64_t t = first; t < first + count; ++t, to += K) {
    read_row(x, t * x.strides()[0] + key_head * x.strides()[1], x.strides()[2], K, row.data());
    if (call.problem.l2norm == Switch::on)
      vectorised<Real>([&] { normalise(row.data(), K, to); });
    else
      std::ranges::transform(row, to, [](double value) { return Real(value); });
  }
}

// Tokens [first, first + count) of value head h: what its value rows share.
template <class Real>
void load_tile(const Call& call, std::int64_t first, std::int64_t count, std::int64_t h, Tile<Real>& tile) {
  const Problem& p = call.problem;
  const Tensor& beta = get(call.inputs, "beta");
  tile.tokens = count;
  tile.K = p.K;
  tile.scale = Real(static_cast<double>(static_cast<float>(p.q_scale())));
  load_keys(call, get(call.inputs, "q"), first, count, h / (p.HV / p.HK), tile.q);
  load_keys(call, get(call.inputs, "k"), first, count, h / (p.HV / p.HK), tile.k);
  tile.alpha.clear();
  tile.beta.clear();
  vectorised<Real>([&] {
    const LogDecay<Real> g(call, h);
    for (std::int64_t t = first; t < first + count; ++t) tile.alpha.push_back(decay<Real>(g(t)));
  });
  for (std::int64_t t = first; t < first + count; ++t) tile.beta.push_back(Real(beta.at({t, h})));
}

// One sequence, value head h, the value rows named by columns: through all tokens, a chunk at a time so that taps can be
// taken in between and a block of S stays in the first-level cache.
template <class Real>
void gdn_rows(const Call& call, const Sequence& sequence, std::int64_t h, std::span<const std::int64_t> columns,
              Answer& answer) {
  using Block = Rows<Real>;
  const Problem& p = call.problem;
  const auto output = [](Tensors& tensors, const char* name) {
    const auto it = tensors.find(name);
    return it == tensors.end() ? std::span<double>{} : it->second.template as<double>();
  };
  const auto o = output(answer.outputs, "o"), final_state = output(answer.outputs, "final_state"),
             v_new = output(answer.taps, "v_new"), entry = output(answer.taps, "S");
  const std::size_t blocks = (columns.size() + Block::kRows - 1) / Block::kRows, K = static_cast<std::size_t>(p.K);
  const auto for_each_row = [&](auto visit) {  // visit(block, row in the block, value column)
    for (std::size_t c = 0; c < columns.size(); ++c) visit(c / Block::kRows, static_cast<int>(c % Block::kRows), columns[c]);
  };
  std::vector<Block> S(blocks * K);
  const auto store_state = [&](std::span<double> to, std::int64_t leading) {  // leading: sequence or chunk
    for_each_row([&](std::size_t b, int row, std::int64_t c) {
      double* at = to.data() + ((leading * p.HV + h) * p.V + c) * p.K;
      for (std::size_t j = 0; j < K; ++j) at[j] = static_cast<double>(S[b * K + j].get(row));
    });
  };
  if (sequence.slot <= 0) {  // without a slot: zero rows, and nothing else
    for (std::int64_t row = sequence.first * p.HV + h; row < sequence.end * p.HV; row += p.HV)
      for (const std::int64_t c : columns) o[static_cast<std::size_t>(row * p.V + c)] = 0;
    return;
  }
  const std::int64_t slot = p.slots ? sequence.slot : sequence.n;  // of the states
  if (const Tensor* h0 = find(call.inputs, "initial_state"); h0 && sequence.has_state) {
    std::vector<double> values(K);
    const Shape& strides = h0->strides();
    for_each_row([&](std::size_t b, int row, std::int64_t c) {
      read_row(*h0, slot * strides[0] + h * strides[1] + c * strides[2], strides[3], p.K, values.data());
      for (std::size_t j = 0; j < K; ++j) S[b * K + j].set(row, Real(values[j]));
    });
  }
  const Tensor& v = get(call.inputs, "v");
  Tile<Real> tile;
  std::vector<double> values(static_cast<std::size_t>(p.V));
  std::vector<Block> in, written, read;  // v, u, o: [blocks, tokens]
  std::int64_t chunk = sequence.chunk;
  for (std::int64_t first = sequence.first; first < sequence.end; first += p.chunk, ++chunk) {
    if (!entry.empty()) store_state(entry, chunk);
    load_tile(call, first, std::min(p.chunk, sequence.end - first), h, tile);
    const auto tokens = static_cast<std::size_t>(tile.tokens);
    for (auto* rows : {&in, &written, &read}) rows->assign(blocks * tokens, Block{});
    for (std::size_t i = 0; i < tokens; ++i) {
      const std::int64_t t = first + static_cast<std::int64_t>(i);
      read_row(v, t * v.strides()[0] + h * v.strides()[1], v.strides()[2], p.V, values.data());
      for_each_row([&](std::size_t b, int row, std::int64_t c) {
        in[b * tokens + i].set(row, Real(values[static_cast<std::size_t>(c)]));
      });
    }
    vectorised<Real>([&] {
      for (std::size_t b = 0; b < blocks; ++b)
        advance<Real, kGdn>(tile, &S[b * K], &in[b * tokens], &written[b * tokens], &read[b * tokens]);
    });
    for (std::size_t i = 0; i < tokens; ++i) {
      const std::int64_t row_of_v = ((first + static_cast<std::int64_t>(i)) * p.HV + h) * p.V;
      for_each_row([&](std::size_t b, int row, std::int64_t c) {
        o[static_cast<std::size_t>(row_of_v + c)] = static_cast<double>(read[b * tokens + i].get(row));
        if (!v_new.empty())
          v_new[static_cast<std::size_t>(row_of_v + c)] = static_cast<double>(written[b * tokens + i].get(row));
      });
    }
  }
  if (!final_state.empty()) store_state(final_state, slot);
}

template <class Real>
void gdn(const Call& call, Answer& answer) {
  const Problem& p = call.problem;
  const std::vector<std::int64_t> columns = sampled_columns(p.V, call.options.value_columns);
  const std::vector<Sequence> all = sequences(p);
  constexpr std::size_t kGroup = 64;  // value columns of a work item, which loads its keys once
  const auto count = static_cast<std::int64_t>(columns.size()),
             groups = (count + std::int64_t{kGroup} - 1) / std::int64_t{kGroup};
  const bool threads = p.tokens() * p.HV * count * p.K > kWorthThreads;
#pragma omp parallel for schedule(dynamic) if (threads)
  for (std::int64_t item = 0; item < p.sequences() * p.HV * groups; ++item) {
    const std::size_t n = static_cast<std::size_t>(item / groups / p.HV),
                      first = static_cast<std::size_t>(item % groups) * kGroup;
    gdn_rows<Real>(call, all[n], item / groups % p.HV,
                   std::span(columns).subspan(first, std::min(kGroup, columns.size() - first)), answer);
  }
}

extern template void gdn<double>(const Call&, Answer&);  // gdn.cc
extern template void gdn<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
