// The chunk form against the recurrence, both in double-double before any rounding to f64; and the taps against what they
// are defined by.
#include "oracle/chunk.h"

#include <gtest/gtest.h>

#include "core/inputs.h"
#include "oracle/error_bound.h"
#include "oracle/gdn.h"

namespace deltagauge::oracle {
namespace {

// One head through the recurrence in one tile: o [tokens, V], S^T [K, V].
ChunkwiseHead recurrent_head(const Call& call, const Sequence& s, std::int64_t h) {
  const Problem& p = call.problem;
  Tile<DoubleDouble> tile;
  load_tile(call, s.first, s.end - s.first, h, tile);
  ChunkwiseHead head{Matrix(tile.tokens, p.V), Matrix(p.K, p.V)};
  const auto tokens = static_cast<std::size_t>(tile.tokens);
  for (std::int64_t c = 0; c < p.V; ++c) {  // a column at a time, in row 0 of the block
    std::vector<Rows<DoubleDouble>> S(static_cast<std::size_t>(p.K)), v(tokens), u(tokens), o(tokens);
    for (std::size_t j = 0; j < S.size(); ++j)
      if (const Tensor* h0 = find(call.inputs, "initial_state"))
        S[j].set(0, DoubleDouble(h0->at({s.n, h, c, static_cast<std::int64_t>(j)})));
    for (std::size_t t = 0; t < tokens; ++t)
      v[t].set(0, DoubleDouble(get(call.inputs, "v").at({s.first + static_cast<std::int64_t>(t), h, c})));
    vectorised<DoubleDouble>([&] { advance<DoubleDouble, kGdn>(tile, S.data(), v.data(), u.data(), o.data()); });
    for (std::size_t t = 0; t < tokens; ++t) head.o.set(static_cast<std::int64_t>(t), c, o[t].get(0));
    for (std::size_t j = 0; j < S.size(); ++j) head.S.set(static_cast<std::int64_t>(j), c, S[j].get(0));
  }
  return head;
}

// A first-order bound on the error of the chunk form, from f64 taps of the same chunk length. With m the error of a product
// and y that of adding one more, f(n) = n (m + y), z the relative error of a decay (exp, 3 u^2 a step of its sum,
// and the errors of gates that are transformed here):
//   |dA| <= (z + 2 m + f(K)) A~, A~ = beta d(i, j) |k_i| . |k_j|
//   X = w, u:  |dX| <= |Ainv| (|dA| + f(C) |I + A|) |X| + |Ainv| (z + 2 m) |rhs|            (substitution is backward
//   stable) |dv| <= |du| + |dw||S| + f(K + 1) (|u| + |w||S|) |dS'| <= (z + m + f(C + 1)) (d(C) |S| + sum |late k||v_new|) +
//   sum |late k||dv|, and dS itself passes on undiminished at most |do| <= scale (|q| |dS| + (z + 2 m + f(K) + f(K + C)) (d
//   |q||S| + P~ |v_new|) + P~ |dv|) + m |o|, P~ = d(i, j) |q_i|.|k_j|
struct ChunkBound {
  std::vector<double> o, state;  // [T, V] of each element, [V] of the norm of a row
};
ChunkBound chunk_bound(const Problem& p, const Tensors& inputs, const Tensors& taps, std::int64_t h) {
  constexpr double m = 7 * 0x1p-106, y = 3 * 0x1p-106;
  const auto f = [](double n) { return n * (m + y); };
  const std::int64_t C = p.chunk, K = p.K, V = p.V, T = p.tokens(), key_head = h / (p.HV / p.HK);
  const double scale = static_cast<float>(p.q_scale()),
               n = p.l2norm == Switch::on ? kDd.dot(static_cast<double>(K)) + 4 * kDd.op : 0;
  const Tensor &Ainv = get(taps, "Ainv"), &A = get(taps, "Akk"), &w = get(taps, "w"), &u = get(taps, "u"),
               &S = get(taps, "S"), &v_new = get(taps, "v_new");
  const Tensor g = log_decays(p, inputs);
  const auto in = [&](const char* name, std::int64_t t, std::int64_t j) {
    return std::abs(get(inputs, name).at({t, key_head, j}));
  };
  ChunkBound bound{std::vector<double>(static_cast<std::size_t>(T * V)), std::vector<double>(static_cast<std::size_t>(V))};
  for (std::int64_t v = 0; v < V; ++v) {
    double B = 0;
    for (std::int64_t first = 0, chunk = 0; first < T; first += C, ++chunk) {
      const std::int64_t count = std::min(C, T - first);
      const auto size = static_cast<std::size_t>(count);
      double sum = 0, of_gates = 0;  // of |g|, as far as exp sees it, and of the errors of those
      for (std::int64_t i = 0; i < count; ++i) {
        const double gate = std::min(std::abs(g.at({first + i, h})), 746.0);
        sum += gate;
        if (p.raw_gate == Switch::off || gate == 746) continue;
        const double shifted = get(inputs, "raw_gate").at({first + i, h}) + get(inputs, "dt_bias").at({h});
        of_gates += gate_error(p, shifted, find(inputs, "A_log"), h, kDd);
      }
      const double z = kDd.exp + 3 * 0x1p-106 * static_cast<double>(count) * std::min(sum, 746.0) + of_gates;
      const auto d = [&](std::int64_t i, std::int64_t j) {  // decay over (j, i]
        double total = 0;
        for (std::int64_t l = j + 1; l <= i; ++l) total += g.at({first + l, h});
        return std::exp(total);
      };
      std::vector<double> residual_w(size * static_cast<std::size_t>(K)), residual_u(size), dv(size);
      const auto k_dot = [&](const char* x, std::int64_t i, std::int64_t j) {
        double total = 0;
        for (std::int64_t l = 0; l < K; ++l) total += in(x, first + i, l) * in("k", first + j, l);
        return total;
      };
      for (std::int64_t i = 0; i < count; ++i) {
        const double beta = get(inputs, "beta").at({first + i, h}), rhs = z + 2 * m + n;
        const auto slot = static_cast<std::size_t>(i);
        residual_u[slot] = rhs * beta * std::abs(get(inputs, "v").at({first + i, h, v}));
        for (std::int64_t l = 0; l < K; ++l)
          residual_w[slot * static_cast<std::size_t>(K) + static_cast<std::size_t>(l)] =
              rhs * beta * d(i, -1) * in("k", first + i, l);
        for (std::int64_t j = 0; j <= i; ++j) {
          const double bad = j == i ? f(static_cast<double>(C))
                                    : (z + 2 * m + f(static_cast<double>(K)) + 2 * n) * beta * d(i, j) * k_dot("k", i, j) +
                                          f(static_cast<double>(C)) * std::abs(A.at({chunk, h, i, j}));
          residual_u[slot] += bad * std::abs(u.at({first + j, h, v}));
          for (std::int64_t l = 0; l < K; ++l)
            residual_w[slot * static_cast<std::size_t>(K) + static_cast<std::size_t>(l)] +=
                bad * std::abs(w.at({first + j, h, l}));
        }
      }
      double local = 0;
      std::vector<double> late(static_cast<std::size_t>(K));
      for (std::int64_t i = 0; i < count; ++i) {
        const auto slot = static_cast<std::size_t>(i);
        double wS = 0;
        for (std::int64_t l = 0; l < K; ++l) wS += std::abs(w.at({first + i, h, l}) * S.at({chunk, h, v, l}));
        dv[slot] = f(static_cast<double>(K + 1)) * (std::abs(u.at({first + i, h, v})) + wS);
        for (std::int64_t j = 0; j <= i; ++j) {
          double through = residual_u[static_cast<std::size_t>(j)];
          for (std::int64_t l = 0; l < K; ++l)
            through += residual_w[static_cast<std::size_t>(j * K + l)] * std::abs(S.at({chunk, h, v, l}));
          dv[slot] += std::abs(Ainv.at({chunk, h, i, j})) * through;
        }
        double qq = 0, qS = 0, o = 0;
        for (std::int64_t l = 0; l < K; ++l) {
          qq += in("q", first + i, l) * in("q", first + i, l);
          qS += d(i, -1) * in("q", first + i, l) * std::abs(S.at({chunk, h, v, l}));
        }
        o = std::sqrt(qq) * B;
        const double each = z + 3 * m + f(static_cast<double>(2 * K + C)) + 2 * n;
        o += each * qS;
        for (std::int64_t j = 0; j <= i; ++j) {
          const double P = d(i, j) * k_dot("q", i, j);
          o += P * (each * std::abs(v_new.at({first + j, h, v})) + dv[static_cast<std::size_t>(j)]);
        }
        bound.o[static_cast<std::size_t>((first + i) * V + v)] = kSlack * scale * o + kUnderflow;
      }
      for (std::int64_t l = 0; l < K; ++l) {
        const double each = z + m + f(static_cast<double>(C + 1)) + n;
        double entry = each * d(count - 1, -1) * std::abs(S.at({chunk, h, v, l}));
        for (std::int64_t j = 0; j < count; ++j)
          entry += d(count - 1, j) * in("k", first + j, l) *
                   (each * std::abs(v_new.at({first + j, h, v})) + dv[static_cast<std::size_t>(j)]);
        local += entry * entry;
      }
      B += std::sqrt(local) + kUnderflow;
    }
    bound.state[static_cast<std::size_t>(v)] = kSlack * B;
  }
  return bound;
}

class TwoForms : public testing::TestWithParam<const char*> {};

TEST_P(TwoForms, AgreeInDoubleDoubleWithinTheirErrorBounds) {
  Case c = parse_id(GetParam());
  const Tensors inputs = make_inputs(c);
  for (const std::int64_t chunk : {5, 16, 64}) {
    c.problem.chunk = chunk;
    const Options options;
    const Call call{c.problem, inputs, options};
    const Sequence s = sequences(c.problem)[0];
    const Bounds recurrent = gdn_bounds(c.problem, inputs, kDd);
    const Tensors taps = answer(c.problem, inputs, {.precision = Precision::dd, .taps = true}).taps;
    for (std::int64_t h = 0; h < c.problem.HV; ++h) {
      const ChunkwiseHead a = recurrent_head(call, s, h), b = chunkwise_head(call, s, h, chunk);
      const ChunkBound chunkwise = chunk_bound(c.problem, inputs, taps, h);
      for (std::int64_t v = 0; v < c.problem.V; ++v) {
        for (std::int64_t t = 0; t < s.end; ++t)
          EXPECT_LE(std::abs(static_cast<double>(a.o.at(t, v) - b.o.at(t, v))),
                    recurrent.o[static_cast<std::size_t>((t * c.problem.HV + h) * c.problem.V + v)] +
                        chunkwise.o[static_cast<std::size_t>(t * c.problem.V + v)])
              << "chunk " << chunk << " head " << h << " token " << t << " column " << v << ", o " << a.o.at(t, v).hi;
        double square = 0;
        for (std::int64_t k = 0; k < c.problem.K; ++k)
          square += std::pow(static_cast<double>(a.S.at(k, v) - b.S.at(k, v)), 2);
        EXPECT_LE(std::sqrt(square), recurrent.state[static_cast<std::size_t>(h * c.problem.V + v)] +
                                         chunkwise.state[static_cast<std::size_t>(v)]);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Gdn, TwoForms,
                         testing::Values("gdn/fwd/len=37,HK=1,HV=2,K=12,V=6/bf16/gate=mild/h0=normal=1/seed=1",
                                         "gdn/fwd/len=70,HK=1,HV=1,K=16,V=5/bf16/gate=strong/h0=normal=1/seed=2",
                                         "gdn/fwd/len=40,HK=1,HV=1,K=16,V=4/bf16/gate=none/keys=repeated/beta=near1/seed=3",
                                         "gdn/fwd/len=40,HK=1,HV=1,K=16,V=4/f16/gate=none/keys=rho=0.9/h0=normal=10/seed=4",
                                         "gdn/fwd/len=64,HK=1,HV=1,K=8,V=4/f32/gate=edge/h0=normal=1/seed=5",
                                         "gdn/fwd/len=40,HK=1,HV=2,K=8,V=4/bf16/gate=model/raw_gate=on/h0=normal=1/seed=6",
                                         "gdn/fwd/len=64,HK=1,HV=1,K=8,V=4/f32/gate=edge/raw_gate=on/h0=normal=1/seed=7",
                                         "gdn/fwd/len=40,HK=1,HV=1,K=8,V=4/f16/gate=edge/raw_gate=on/transform=bounded/"
                                         "a_log=off/h0=normal=1/seed=8"));

TEST(ChunkTaps, AreWhatTheyAreDefinedBy) {
  const Case c = parse_id("gdn/fwd/len=21+0+5,HK=1,HV=2,K=8,V=6,cap=30/bf16/gate=strong/h0=normal=1/chunk=8/seed=11");
  const Problem& p = c.problem;
  const Tensors inputs = make_inputs(c);
  const Tensors taps = answer(p, inputs, {.precision = Precision::dd, .taps = true}).taps;
  const Tensor &g_cum = get(taps, "g_cum"), &A = get(taps, "Akk"), &Ainv = get(taps, "Ainv"), &w = get(taps, "w"),
               &u = get(taps, "u"), &v_new = get(taps, "v_new"), &S = get(taps, "S");
  ASSERT_EQ(A.shape(), (Shape{4, 2, 8, 8}));  // 21 = 8 + 8 + 5, 0, 5
  ASSERT_EQ(S.shape(), (Shape{4, 2, 6, 8}));
  const std::int64_t firsts[] = {0, 8, 16, 21}, counts[] = {8, 8, 5, 5};
  for (std::int64_t n = 0; n < 4; ++n)
    for (std::int64_t h = 0; h < 2; ++h) {
      double sum = 0;
      for (std::int64_t i = 0; i < 8; ++i) {
        if (i < counts[n]) {
          sum += get(inputs, "g").at({firsts[n] + i, h});
          EXPECT_LE(ulp_distance(DType::f64, g_cum.at({firsts[n] + i, h}), sum), 8) << "eight sums in f64, f32 terms";
        }
        for (std::int64_t j = 0; j < 8; ++j) {
          if (i >= counts[n] || j >= i) {
            EXPECT_EQ(A.at({n, h, i, j}), 0);
            EXPECT_EQ(Ainv.at({n, h, i, j}), i == j ? 1 : 0);
          }
          // (I + A) Ainv = I: a row of at most 8 products of f64-rounded factors
          double product = Ainv.at({n, h, i, j}), magnitude = std::abs(product);
          for (std::int64_t l = 0; l < i; ++l) {
            product += A.at({n, h, i, l}) * Ainv.at({n, h, l, j});
            magnitude += std::abs(A.at({n, h, i, l}) * Ainv.at({n, h, l, j}));
          }
          EXPECT_LE(std::abs(product - (i == j ? 1 : 0)), (8 + 2) * 0x1p-53 * magnitude);
        }
        if (i >= counts[n]) continue;
        for (std::int64_t v = 0; v < 6; ++v) {  // v_new = u - w S^T
          double want = u.at({firsts[n] + i, h, v}), magnitude = std::abs(want);
          for (std::int64_t k = 0; k < 8; ++k) {
            want -= w.at({firsts[n] + i, h, k}) * S.at({n, h, v, k});
            magnitude += std::abs(w.at({firsts[n] + i, h, k}) * S.at({n, h, v, k}));
          }
          EXPECT_LE(std::abs(v_new.at({firsts[n] + i, h, v}) - want), (8 + 4) * 0x1p-53 * magnitude);
        }
      }
    }
  for (std::int64_t k = 0; k < 8; ++k) {
    EXPECT_EQ(S.at({0, 1, 2, k}), get(inputs, "initial_state").at({0, 1, 2, k}));
    EXPECT_EQ(S.at({3, 1, 2, k}), get(inputs, "initial_state").at({2, 1, 2, k}));
  }
  for (std::int64_t t = 26; t < 30; ++t) EXPECT_TRUE(std::isnan(g_cum.at({t, 0})) && std::isnan(v_new.at({t, 1, 3})));
}

TEST(ChunkTaps, AGateOfMinusInfinityCutsTheChunkWithoutANan) {
  Case c = parse_id("gdn/fwd/len=16,HK=1,HV=1,K=8,V=4/bf16/gate=strong/h0=normal=1/chunk=16/seed=2");
  Tensors inputs = make_inputs(c);
  for (const std::int64_t t : {5, 6}) inputs["g"].set({t, 0}, -std::numeric_limits<double>::infinity());
  const Answer exact = answer(c.problem, inputs, {.taps = true});
  for (const auto* tensors : {&exact.outputs, &exact.taps})
    for (const auto& [name, tensor] : *tensors)
      for (const double x : to_f64(tensor)) EXPECT_FALSE(std::isnan(x)) << name;
  for (std::int64_t i = 6; i < 16; ++i)
    for (std::int64_t j = 0; j < 5; ++j) EXPECT_EQ(get(exact.taps, "Ainv").at({0, 0, i, j}), 0);
}

TEST(AnswerChunkwise, RoundsToTheSameF64AsTheRecurrence) {
  for (const std::string gate : {"mixed", "mixed/raw_gate=on", "model/raw_gate=on/transform=bounded"}) {
    const Case c = parse_id("gdn/fwd/len=33+0+70,HK=1,HV=2,K=24,V=10,cap=110/bf16/h0=normal=1/seed=8/gate=" + gate);
    const Tensors inputs = make_inputs(c);
    const Answer a = answer(c.problem, inputs, {.precision = Precision::dd}), b = answer_chunkwise(c.problem, inputs, 32);
    for (const auto& [name, tensor] : a.outputs) {
      const std::vector<double> x = to_f64(tensor), y = to_f64(get(b.outputs, name));
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_LE(ulp_distance(DType::f64, x[i], y[i]), 1) << name << "[" << i << "]: a value half way between two doubles";
    }
  }
}

}  // namespace
}  // namespace deltagauge::oracle
