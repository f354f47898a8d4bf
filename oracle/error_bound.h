// For tests: how far an answer of gdn may lie from the exact one, first order in the rounding of each step. It follows from
// the recurrence alone, with magnitudes from a plain double trace of its own.
//   S_t as computed = F(S_{t-1} as computed) + local_t, and F's linear part is alpha (I - beta k k^T), whose 2-norm is
//   alpha max(1, |1 - beta |k|^2|): so errors of the past do not grow when beta |k|^2 <= 2, and B, a bound on the norm of a
//   value row's error, obeys B_t = |F| B_{t-1} + |local_t|. With e the relative error of one operation, d that of a dot
//   product over sum |a b|, x of exp (with the error of a g that is transformed here), n of the keys (0 unless they are
//   normalised here), P = sum |D k|, R = sum |S q|:
//   |local_t| <= (x + e) |D| + |k| (beta (x + e + d + n) P + 2 e |u|) + (e + n) |u||k| + e |S|
//   |o error| <= scale (|q| B_t + (d + n) R) + 2 e |o|
// kSlack covers the products of two such terms; kUnderflow, per operation, what falls below the range of a pair of doubles.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "core/inputs.h"
#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::oracle {

inline constexpr double kSlack = 1 + 0x1p-20, kUnderflow = 0x1p-960;  // errors here are below 2^-25, squares below 2^-50

struct Arithmetic {
  double op, exp, dot_linear, dot_square;  // relative error of an operation, of exp, and of a dot of n: see dot()
  double dot(double n) const { return n * dot_linear + n * n * dot_square; }
};
inline constexpr Arithmetic kF64{0x1p-53, 0x1p-52, 0x1p-53, 0};                  // libm's exp: less than one ulp
inline constexpr Arithmetic kDd{7 * 0x1p-106, 0x1p-96, 7 * 0x1p-106, 0x1p-106};  // real.h
inline constexpr Arithmetic kQuad{0x1p-113, (746 + 4) * 0x1p-113, 0x1p-113, 0};  // exp: real_test.cc

// How far the transform of y by a head's A_log may lie from the exact one. A relative error r of the argument z becomes
// |z| s(z) r in softplus and |z| (1 - s(z)) r in sigmoid's ratio.
inline double gate_error(const Problem& p, double y, const Tensor* A_log, std::int64_t head, const Arithmetic& a) {
  if (std::isinf(y)) return 0;
  const double to_a = a.exp + a.op;  // exp(A_log), and its product
  const double scale = A_log ? std::exp(A_log->at({head})) : 1;
  if (p.transform == "softplus") {
    const double s = 1 / (1 + std::exp(-y)), tail = std::log1p(std::exp(-std::abs(y)));
    return kSlack * scale * (std::abs(y) * s * a.op + tail * 2 * a.exp + (to_a + a.op) * (std::max(y, 0.0) + tail)) +
           kUnderflow;
  }
  const double z = scale * y, s = 1 / (1 + std::exp(-z)), most = std::abs(p.lower_bound) * (s + kSlack - 1);
  return kSlack * most * (std::abs(z) * (1 - s) * (to_a + 2 * a.op) + a.exp + 4 * a.op) + kUnderflow;
}

struct Bounds {
  std::vector<double> o;      // [T, HV, V], of each element; 0 past the active end
  std::vector<double> state;  // [N, HV, V], of the norm of each row of final_state
};

inline Bounds gdn_bounds(const Problem& p, const Tensors& inputs, const Arithmetic& a) {
  const std::int64_t K = p.K;
  const auto size = static_cast<std::size_t>(K);
  const bool raw = p.raw_gate == Switch::on;
  const Tensor &q = get(inputs, "q"), &k = get(inputs, "k"), &v = get(inputs, "v"), g = log_decays(p, inputs),
               &beta = get(inputs, "beta"), *h0 = find(inputs, "initial_state");
  const double scale = static_cast<float>(p.q_scale()), d = a.dot(static_cast<double>(K)), e = a.op,
               n = p.l2norm == Switch::on ? d + 4 * e : 0;  // sum (d), its root (d / 2 + e), inverse, product
  const auto norm = [](const std::vector<double>& x) {
    double s = 0;
    for (const double value : x) s += value * value;
    return std::sqrt(s);
  };
  const auto key = [&](const Tensor& x, std::int64_t t, std::int64_t h) {
    std::vector<double> row(size);
    for (std::int64_t j = 0; j < K; ++j) row[static_cast<std::size_t>(j)] = x.at({t, h, j});
    if (p.l2norm == Switch::on) {
      const double root = std::sqrt(norm(row) * norm(row) + 1e-6);
      for (double& value : row) value /= root;
    }
    return row;
  };
  Bounds bounds{std::vector<double>(static_cast<std::size_t>(p.rows() * p.HV * p.V)),
                std::vector<double>(static_cast<std::size_t>(p.sequences() * p.HV * p.V))};
  const std::vector<std::int64_t> offsets = p.offsets();
  for (std::int64_t s = 0; s < p.sequences(); ++s)
    for (std::int64_t h = 0; h < p.HV; ++h)
      for (std::int64_t c = 0; c < p.V; ++c) {
        std::vector<double> S(size), D(size);
        for (std::int64_t j = 0; h0 && j < K; ++j) S[static_cast<std::size_t>(j)] = h0->at({s, h, c, j});
        double B = 0;
        for (std::int64_t t = offsets[static_cast<std::size_t>(s)]; t < offsets[static_cast<std::size_t>(s) + 1]; ++t) {
          const std::vector<double> kt = key(k, t, h / (p.HV / p.HK)), qt = key(q, t, h / (p.HV / p.HK));
          const double gate = g.at({t, h}), alpha = std::exp(gate), b = beta.at({t, h});
          const auto y = [&] { return get(inputs, "raw_gate").at({t, h}) + get(inputs, "dt_bias").at({h}); };
          const double of_g = raw ? gate_error(p, y(), find(inputs, "A_log"), h, a) : 0;
          const double x = (gate == 0 || alpha == 0 ? 0 : a.exp) + (alpha == 0 ? 0 : of_g);
          double seen = 0, P = 0, R = 0, o = 0;
          for (std::size_t j = 0; j < size; ++j) {
            D[j] = alpha * S[j];
            seen += D[j] * kt[j];
            P += std::abs(D[j] * kt[j]);
          }
          const double u = b * (v.at({t, h, c}) - seen);
          for (std::size_t j = 0; j < size; ++j) {
            S[j] = D[j] + u * kt[j];
            o += scale * S[j] * qt[j];
            R += std::abs(S[j] * qt[j]);
          }
          const double kk = norm(kt), uu = std::abs(u);
          B *= alpha * std::max(1.0, std::abs(1 - b * kk * kk));
          B += (x + e) * norm(D) + kk * (b * (x + e + d + n) * P + 2 * e * uu) + (e + n) * uu * kk + e * norm(S);
          B += kUnderflow * static_cast<double>(K) * (1 + kk);
          bounds.o[static_cast<std::size_t>((t * p.HV + h) * p.V + c)] =
              kSlack * (scale * (norm(qt) * B + (d + n) * R) + 2 * e * std::abs(o)) + kUnderflow * static_cast<double>(K);
        }
        bounds.state[static_cast<std::size_t>((s * p.HV + h) * p.V + c)] = kSlack * B;
      }
  return bounds;
}

// gdn_decode: the terms of o and of S' multiplied out, alpha S q - alpha beta (S k)(k.q) + beta v (k.q) and alpha S - alpha
// beta (S k) k^T + beta v k^T, are each off by the longest chain of operations that leads to them: a dot product of K and at
// most 64 others, of the norms, the gate and beta; alpha = exp(g) by |g| times the error of g besides. Here state is [P, HV,
// V, K].
inline Bounds gdn_decode_bounds(const Problem& p, const Tensors& inputs, const Arithmetic& a) {
  const auto x = to_f64(get(inputs, "packed_qkv")), pool = to_f64(get(inputs, "initial_state"));
  const std::int64_t width = 2 * p.HK * p.K + p.HV * p.V;
  const auto slots = p.state_indices();
  const auto has = p.has_initial_state();
  Bounds bounds{std::vector<double>(static_cast<std::size_t>(p.rows() * p.HV * p.V)), std::vector<double>(pool.size())};
  for (std::int64_t n = 0; n < p.sequences(); ++n)
    for (std::int64_t h = 0; h < p.HV; ++h) {
      const std::int64_t slot = slots[static_cast<std::size_t>(n)], group = h / (p.HV / p.HK);
      if (slot <= 0) continue;
      const double* row = x.data() + n * width;
      const auto unit = [&](std::int64_t section) {
        const double* from = row + (section * p.HK + group) * p.K;
        std::vector<double> key(from, from + p.K);
        double square = 1e-6;
        for (const double value : key) square += value * value;
        for (double& value : key) value = std::abs(value) / std::sqrt(square);
        return key;
      };
      const std::vector<double> q = unit(0), k = unit(1);
      const double y = get(inputs, "raw_gate").at({n, h}) + get(inputs, "dt_bias").at({h});
      const double g = std::exp(get(inputs, "A_log").at({h})) * (std::max(y, 0.0) + std::log1p(std::exp(-std::abs(y))));
      const double alpha = std::exp(-g), beta = p.neg_eigval == Switch::on ? 2 : 1;
      const double chain =
          kSlack * (a.dot(static_cast<double>(p.K)) + (64 + (alpha > 0 ? 8 * g : 0)) * std::max(a.op, a.exp));
      for (std::int64_t c = 0; c < p.V; ++c) {
        const std::int64_t first = ((slot * p.HV + h) * p.V + c) * p.K;
        const double v = std::abs(row[2 * p.HK * p.K + h * p.V + c]);
        double seen = 0, read = 0;
        for (std::int64_t j = 0; has[static_cast<std::size_t>(n)] && j < p.K; ++j) {
          const double s = alpha * std::abs(pool[static_cast<std::size_t>(first + j)]);
          bounds.state[static_cast<std::size_t>(first + j)] = s;
          seen += s * k[static_cast<std::size_t>(j)];
          read += s * q[static_cast<std::size_t>(j)];
        }
        const double write = beta * (seen + v), under = kUnderflow * static_cast<double>(p.K);
        bounds.o[static_cast<std::size_t>((n * p.HV + h) * p.V + c)] = p.q_scale() * chain * (read + write) + under;
        for (std::int64_t j = 0; j < p.K; ++j) {
          double& bound = bounds.state[static_cast<std::size_t>(first + j)];
          bound = chain * (bound + write * k[static_cast<std::size_t>(j)]) + under;
        }
      }
    }
  return bounds;
}

}  // namespace deltagauge::oracle
