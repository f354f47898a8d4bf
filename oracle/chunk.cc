#include "oracle/chunk.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/op.h"
#include "oracle/gate.h"
#include "oracle/l2norm.h"

namespace deltagauge::oracle {
namespace {

using DD = DoubleDouble;

// Rows [first, first + count) of one head of a token-major tensor, at the given columns.
Matrix load_rows(const Tensor& x, std::int64_t first, std::int64_t count, std::int64_t head,
                 std::span<const std::int64_t> columns, Switch l2norm) {
  const std::int64_t width = x.dim(2);
  Matrix m(count, static_cast<std::int64_t>(columns.size()));
  std::vector<double> values(static_cast<std::size_t>(width));
  std::vector<DD> row(values.size());
  for (std::int64_t i = 0; i < count; ++i) {
    read_row(x, (first + i) * x.strides()[0] + head * x.strides()[1], x.strides()[2], width, values.data());
    if (l2norm == Switch::on)
      vectorised<DD>([&] { normalise(values.data(), width, row.data()); });
    else
      std::ranges::transform(values, row.begin(), [](double value) { return DD(value); });
    for (std::size_t j = 0; j < columns.size(); ++j)
      m.set(i, static_cast<std::int64_t>(j), row[static_cast<std::size_t>(columns[j])]);
  }
  return m;
}

// The sums of g over (j, i] and their exponentials; entry is j = -1.
struct Decay {
  std::vector<DD> cumulative, entry;  // [tokens]
  Matrix between;                     // [tokens, tokens], 0 above the diagonal
};
Decay decay_of(const Call& call, std::int64_t first, std::int64_t count, std::int64_t h) {
  Decay d{std::vector<DD>(static_cast<std::size_t>(count)), std::vector<DD>(static_cast<std::size_t>(count)),
          Matrix(count, count)};
  vectorised<DD>([&] {
    const LogDecay<DD> at(call, h);
    std::vector<DD> g;
    for (std::int64_t i = 0; i < count; ++i) g.push_back(at(first + i));
    for (std::int64_t j = -1; j < count; ++j) {
      DD sum;
      for (std::int64_t i = j; i < count; ++i) {
        if (i < 0) continue;
        const DD step = i == j ? DD() : g[static_cast<std::size_t>(i)];
        sum = std::isinf(sum.hi) || std::isinf(step.hi) ? DD(sum.hi + step.hi) : sum + step;
        if (j < 0)
          d.cumulative[static_cast<std::size_t>(i)] = sum, d.entry[static_cast<std::size_t>(i)] = exp(sum);
        else
          d.between.set(i, j, exp(sum));
      }
    }
  });
  return d;
}

// What a chunk is before its entry state is known.
struct Chunk {
  Decay decay;
  Matrix k, A, w, u;
};
Chunk chunk_of(const Call& call, std::int64_t first, std::int64_t count, std::int64_t h, std::span<const std::int64_t> keys,
               std::span<const std::int64_t> columns) {
  const Problem& p = call.problem;
  const Tensor& beta = get(call.inputs, "beta");
  Chunk c;
  c.decay = decay_of(call, first, count, h);
  c.k = load_rows(get(call.inputs, "k"), first, count, h / (p.HV / p.HK), keys, p.l2norm);
  c.w = c.k;
  c.u = load_rows(get(call.inputs, "v"), first, count, h, columns, Switch::off);
  c.A = Matrix(count, count);
  add_product(c.A, c.k, transposed(c.k));
  vectorised<DD>([&] {
    for (std::int64_t i = 0; i < count; ++i) {
      const DD b(beta.at({first + i, h})), from_entry = b * c.decay.entry[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j < count; ++j) c.A.set(i, j, j < i ? b * c.decay.between.at(i, j) * c.A.at(i, j) : DD());
      for (std::int64_t j = 0; j < c.w.cols(); ++j) c.w.set(i, j, from_entry * c.w.at(i, j));
      for (std::int64_t j = 0; j < c.u.cols(); ++j) c.u.set(i, j, b * c.u.at(i, j));
    }
  });
  solve_unit_lower(c.A, c.w);
  solve_unit_lower(c.A, c.u);
  return c;
}

Matrix inverse(const Matrix& A) {
  Matrix x(A.rows(), A.rows());
  for (std::int64_t i = 0; i < x.rows(); ++i) x.set(i, i, DD(1.0));
  solve_unit_lower(A, x);
  return x;
}

}  // namespace

Tensors chunk_taps(const Call& call) {
  const Problem& p = call.problem;
  const std::int64_t T = p.rows(), C = p.chunk, NC = chunk_count(p);
  const std::vector<std::int64_t> keys = sampled_columns(p.K, 0), columns = sampled_columns(p.V, call.options.value_columns);
  Tensors taps;
  for (const auto& [name, shape] : {std::pair<const char*, Shape>{"g_cum", {T, p.HV}},
                                    {"Akk", {NC, p.HV, C, C}},
                                    {"Ainv", {NC, p.HV, C, C}},
                                    {"w", {T, p.HV, p.K}},
                                    {"u", {T, p.HV, p.V}},
                                    {"v_new", {T, p.HV, p.V}},
                                    {"S", {NC, p.HV, p.V, p.K}}})
    taps[name] = unanswered(shape);
  const auto span = [&](const char* name) { return taps.find(name)->second.as<double>().data(); };
  double *g_cum = span("g_cum"), *Akk = span("Akk"), *Ainv = span("Ainv"), *w = span("w"), *u = span("u");
  std::vector<std::pair<Sequence, std::int64_t>> chunks;  // sequence, first row
  for (const Sequence& s : sequences(p))
    for (std::int64_t first = s.first; first < s.end; first += C) chunks.emplace_back(s, first);
#pragma omp parallel for schedule(dynamic) if (p.tokens() * p.HV * C * (p.K + p.V) > kWorthThreads)
  for (std::int64_t item = 0; item < NC * p.HV; ++item) {
    const std::int64_t h = item % p.HV;
    const auto& [sequence, first] = chunks[static_cast<std::size_t>(item / p.HV)];
    const std::int64_t count = std::min(C, sequence.end - first);
    const Chunk c = chunk_of(call, first, count, h, keys, columns);
    const Matrix inv = inverse(c.A);
    for (std::int64_t i = 0; i < C; ++i)
      for (std::int64_t j = 0; j < C; ++j) {
        const bool inside = i < count && j < count;
        Akk[(item * C + i) * C + j] = inside ? static_cast<double>(c.A.at(i, j)) : 0;
        Ainv[(item * C + i) * C + j] = inside ? static_cast<double>(inv.at(i, j)) : i == j;
      }
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t row = (first + i) * p.HV + h;
      g_cum[row] = static_cast<double>(c.decay.cumulative[static_cast<std::size_t>(i)]);
      for (std::int64_t j = 0; j < p.K; ++j) w[row * p.K + j] = static_cast<double>(c.w.at(i, j));
      for (std::size_t j = 0; j < columns.size(); ++j)
        u[row * p.V + columns[j]] = static_cast<double>(c.u.at(i, static_cast<std::int64_t>(j)));
    }
  }
  return taps;
}

ChunkwiseHead chunkwise_head(const Call& call, const Sequence& sequence, std::int64_t h, std::int64_t chunk) {
  const Problem& p = call.problem;
  const std::vector<std::int64_t> keys = sampled_columns(p.K, 0), columns = sampled_columns(p.V, 0);
  const DD scale(static_cast<double>(static_cast<float>(p.q_scale())));
  ChunkwiseHead head{Matrix(sequence.end - sequence.first, p.V), Matrix(p.K, p.V)};
  Matrix& S = head.S;
  if (const Tensor* h0 = find(call.inputs, "initial_state"); h0 && sequence.has_state)
    for (std::int64_t k = 0; k < p.K; ++k)
      for (std::int64_t v = 0; v < p.V; ++v) S.set(k, v, DD(h0->at({p.slots ? sequence.slot : sequence.n, h, v, k})));
  for (std::int64_t first = sequence.first; first < sequence.end; first += chunk) {
    const std::int64_t count = std::min(chunk, sequence.end - first);
    const Chunk c = chunk_of(call, first, count, h, keys, columns);
    const Matrix q = load_rows(get(call.inputs, "q"), first, count, h / (p.HV / p.HK), keys, p.l2norm);
    Matrix minus_w = c.w, v_new = c.u, from_entry = q, weights(count, count), late_k = c.k, next(p.K, p.V), o(count, p.V);
    add_product(weights, q, transposed(c.k));
    vectorised<DD>([&] {
      for (std::int64_t i = 0; i < count; ++i) {
        const DD last = c.decay.between.at(count - 1, i);
        for (std::int64_t k = 0; k < p.K; ++k) {
          minus_w.set(i, k, -c.w.at(i, k));
          from_entry.set(i, k, c.decay.entry[static_cast<std::size_t>(i)] * q.at(i, k));
          late_k.set(i, k, last * c.k.at(i, k));
        }
        for (std::int64_t j = 0; j < count; ++j) weights.set(i, j, c.decay.between.at(i, j) * weights.at(i, j));
      }
    });
    add_product(v_new, minus_w, S);
    add_product(o, from_entry, S);
    add_product(o, weights, v_new);
    vectorised<DD>([&] {
      for (std::int64_t i = 0; i < count; ++i)
        for (std::int64_t v = 0; v < p.V; ++v) head.o.set(first - sequence.first + i, v, scale * o.at(i, v));
      for (std::int64_t k = 0; k < p.K; ++k) next.add_scaled(k, c.decay.entry.back(), S, k);
    });
    add_product(next, transposed(late_k), v_new);
    S = std::move(next);
  }
  return head;
}

}  // namespace deltagauge::oracle
