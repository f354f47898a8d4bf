#include "validate/floor.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs.h"

namespace deltagauge::validate {
namespace {

double unit_of(reference::Accumulate accumulate) {
  return accumulate == reference::Accumulate::tensor_core ? 2 * unit_roundoff(DType::f32) : unit_roundoff(DType::f32);
}

// The error of a gate's transform over the unit roundoff. softplus: y rounds once, a condition of |y| below 0 and 1 above;
// exp and log1p within 2 units each, a product; exp(A_log) 2 units and its argument. bounded: sigmoid(a y) has the condition
// |a y| below 0.
double gate_error(const Problem& p, double y, const Tensor* logs, std::int64_t head) {
  if (std::isinf(y)) return 0;
  const bool softplus = p.transform == "softplus";
  const double A_log = logs ? logs->load(head) : 0, a = std::exp(A_log), z = softplus ? y : a * y;
  const double condition = z < 0 ? -z : 1;
  const double steps = (logs ? 2 + std::abs(A_log) : 0) * (softplus ? 1 : 1 + condition) + 2 * condition + 6;
  const double g =
      softplus ? a * (std::max(y, 0.0) + std::log1p(std::exp(-std::abs(y)))) : std::abs(p.lower_bound) / (1 + std::exp(-z));
  return steps * g;
}

// What the floors need of gdn's inputs: norms of rows, gates and betas, in f64.
struct Sizes {
  const Problem& p;
  std::vector<double> k, q;                             // [T, HK] norms, as the recurrence sees them
  std::vector<double> v;                                // [T, HV, V]
  std::vector<double> g, beta;                          // [T, HV]
  std::vector<double> g_error;                          // [T, HV] of a transform, over u; 0 without one
  std::vector<double> h0;                               // [N or P, HV, V] norms of the initial state's rows, or empty
  std::vector<std::int64_t> slots = p.state_indices();  // of a pool, or empty
  std::vector<bool> has = p.has_initial_state();

  Sizes(const Problem& problem, const Tensors& inputs)
      : p(problem),
        k(norms(inputs, "k")),
        q(norms(inputs, "q")),
        v(to_f64(get(inputs, "v"))),
        g(to_f64(log_decays(p, inputs))),
        beta(to_f64(get(inputs, "beta"))),
        g_error(g.size(), 0) {
    if (p.raw_gate == Switch::on) {
      const Tensor &raw = get(inputs, "raw_gate"), &bias = get(inputs, "dt_bias"), *A_log = find(inputs, "A_log");
      for (std::int64_t i = 0; i < p.tokens() * p.HV; ++i) {
        const double e = gate_error(p, raw.load(i) + bias.load(i % p.HV), A_log, i % p.HV);
        if (std::isfinite(e)) g_error[static_cast<std::size_t>(i)] = e;
      }
    }
    if (find(inputs, "initial_state")) h0 = norms(inputs, "initial_state");
    if (p.l2norm == Switch::on)
      for (auto* norm : {&k, &q})
        for (double& x : *norm) x = std::min(x, 1.0) > 0 ? 1 : 0;
  }
  std::size_t gate_at(std::int64_t t, std::int64_t h) const { return static_cast<std::size_t>(t * p.HV + h); }
  std::size_t key_at(std::int64_t t, std::int64_t h) const { return static_cast<std::size_t>(t * p.HK + h / (p.HV / p.HK)); }

 private:
  static std::vector<double> norms(const Tensors& inputs, std::string_view name) {
    const Tensor& tensor = get(inputs, name);
    const auto values = to_f64(tensor);
    const auto width = static_cast<std::size_t>(tensor.shape().back());
    std::vector<double> out(width ? values.size() / width : 0, 0);
    for (std::size_t i = 0; i < out.size() * width; ++i) out[i / width] += values[i] * values[i];
    for (double& x : out) x = std::sqrt(x);
    return out;
  }
};

// The recurrence of floor.h for one sequence and head. after(i, scale |q|, sqrt(K) u) sees the state after token i.
struct Walk {
  std::vector<double> state2, error2, write;  // s^2, e^2 per value row; w, the error of u_t = v_new

  template <class After>
  void run(const Sizes& in, const Series& s, std::int64_t length, std::int64_t chunk, double u, After after) {
    const Problem& p = in.p;
    const auto V = static_cast<std::size_t>(p.V);
    state2.assign(V, 0);
    error2.assign(V, 0);
    write.assign(V, 0);
    const auto n = static_cast<std::size_t>(s.sequence);
    const bool reads = !in.h0.empty() && (in.slots.empty() || (in.slots[n] > 0 && in.has[n]));
    const std::int64_t state = in.slots.empty() ? s.sequence : in.slots[n];
    for (std::size_t v = 0; v < V && reads; ++v) {
      const double norm = in.h0[static_cast<std::size_t>(state * p.HV + s.head) * V + v];
      state2[v] = norm * norm;
    }
    const double root = std::sqrt(static_cast<double>(p.K)) * u;
    double b = 0;
    for (std::int64_t i = 0; i < length; ++i) {
      const std::int64_t t = s.token + i;
      const double g = in.g[in.gate_at(t, s.head)], beta = in.beta[in.gate_at(t, s.head)], k = in.k[in.key_at(t, s.head)];
      b = chunk == 0 || i % chunk == 0 ? g : b + g;
      const double of_g = in.g_error[in.gate_at(t, s.head)];
      const double decay = std::exp(g), exp_error = decay > 0 ? u * (2 + std::abs(b) + of_g) : 0;
      if (decay == 0) b = 0;
      for (std::size_t v = 0; v < V; ++v) {
        const double value = std::abs(in.v[static_cast<std::size_t>(t * p.HV + s.head) * V + v]);
        state2[v] *= decay * decay;
        error2[v] = decay * decay * error2[v] + exp_error * exp_error * state2[v];
        const double w = beta * (root * std::sqrt(state2[v]) * k + u * value);
        write[v] = w + beta * k * std::sqrt(error2[v]);
        error2[v] += k * k * w * w + u * u * state2[v];
        state2[v] += beta * beta * k * k * value * value;
      }
      after(i, p.q_scale() * in.q[in.key_at(t, s.head)], root);
    }
  }
};

void token_floor(const Sizes& in, const reference::Staging& staging, std::string_view tensor, const Rows& rows,
                 std::vector<double>& floor) {
  const double u = unit_of(staging.accumulate);
  for (const Series& s : rows.series) {
    if (!in.slots.empty() && in.slots[static_cast<std::size_t>(s.sequence)] <= 0) continue;  // zero, exactly
    Walk walk;
    walk.run(in, s, s.count, staging.chunk, u, [&](std::int64_t i, double query, double root) {
      double sum = 0;
      for (std::size_t v = 0; v < walk.write.size(); ++v) {
        const double e =
            tensor == "o" ? query * (std::sqrt(walk.error2[v]) + root * std::sqrt(walk.state2[v])) : walk.write[v];
        sum += e * e;
      }
      floor[static_cast<std::size_t>(s.first + i * s.stride)] = std::sqrt(sum);
    });
  }
}

// final_state, and S before each chunk: rows are value rows, so the error of a row is the walk's e.
void state_floor(const Sizes& in, const reference::Staging& staging, std::string_view tensor, const Rows& rows,
                 std::vector<double>& floor) {
  const double u = unit_of(staging.accumulate);
  const auto offsets = in.p.offsets();
  for (const Series& s : rows.series) {
    const auto n = static_cast<std::size_t>(s.sequence);
    const std::int64_t tokens = tensor == "S" ? s.token - offsets[n] : in.p.lengths[n];
    Series from_start = s;
    from_start.token = offsets[n];
    Walk walk;
    walk.run(in, from_start, tokens, staging.chunk, u, [](std::int64_t, double, double) {});
    for (std::int64_t i = 0; i < s.count; ++i)
      floor[static_cast<std::size_t>(s.first + i * s.stride)] = std::sqrt(walk.error2[static_cast<std::size_t>(i)]);
  }
}

std::vector<double> bound_of(const Sizes& in, std::int64_t head, std::int64_t token, std::int64_t count) {
  std::vector<double> bound(static_cast<std::size_t>(count * count), 0);
  for (std::int64_t i = 0; i < count; ++i) {
    bound[static_cast<std::size_t>(i * count + i)] = 1;
    const double k_i = in.k[in.key_at(token + i, head)], beta_i = in.beta[in.gate_at(token + i, head)];
    double sum = 0;
    bool contracts = beta_i * k_i * k_i <= 2;
    for (std::int64_t j = i - 1; j >= 0; --j) {
      const double k_j = in.k[in.key_at(token + j, head)], beta_j = in.beta[in.gate_at(token + j, head)];
      sum += in.g[in.gate_at(token + j + 1, head)];
      contracts = contracts && beta_j * k_j * k_j <= 2;
      bound[static_cast<std::size_t>(i * count + j)] =
          contracts ? beta_i * k_i * k_j * std::exp(sum) : std::numeric_limits<double>::infinity();
    }
  }
  return bound;
}

// Ainv and Akk: entries of the size of the bound, each a dot product of K and, in the inverse, a solve over i. w = Ainv
// (beta k exp(b)) and u = Ainv (beta v): dot products over the chunk.
void chunk_floor(const Sizes& in, const reference::Staging& staging, std::string_view tensor, const Rows& rows,
                 std::vector<double>& floor) {
  const Problem& p = in.p;
  const double u = unit_of(staging.accumulate);
  const bool matrix = tensor == "Ainv" || tensor == "Akk";
  const auto V = static_cast<std::size_t>(p.V);
  for (const Series& s : rows.series) {
    const std::int64_t step = matrix ? s.count : std::max<std::int64_t>(p.chunk, 1);
    for (std::int64_t start = 0; start < s.count; start += step) {
      const std::int64_t count = std::min(step, s.count - start), token = s.token + start;
      const auto bound = bound_of(in, s.head, token, count);
      std::vector<double> b(static_cast<std::size_t>(count)), operand(static_cast<std::size_t>(count), 0), b_error2 = b;
      double sum = 0, open = 0,
             error2 = 0;  // of g, since the chunk began and since a gate closed; variance of g's own errors
      for (std::int64_t i = 0; i < count; ++i) {
        const std::size_t at = in.gate_at(token + i, s.head);
        const bool closed = std::exp(in.g[at]) == 0;
        sum += in.g[at];
        b[static_cast<std::size_t>(i)] = open = closed ? 0 : open + in.g[at];
        b_error2[static_cast<std::size_t>(i)] = error2 = closed ? 0 : error2 + in.g_error[at] * in.g_error[at];
        double value = 0;
        for (std::size_t v = 0; v < V; ++v) value += in.v[at * V + v] * in.v[at * V + v];
        operand[static_cast<std::size_t>(i)] =
            in.beta[at] * (tensor == "w" ? in.k[in.key_at(token + i, s.head)] * std::exp(sum) : std::sqrt(value));
      }
      for (std::int64_t i = 0; i < count; ++i) {
        double total = 0;
        for (std::int64_t j = 0; j <= i; ++j) {
          const double entry = bound[static_cast<std::size_t>(i * count + j)];
          if ((matrix && j == i) || !(entry > 0) || !std::isfinite(entry)) continue;
          const double gates = std::abs(b[static_cast<std::size_t>(i)]) + std::abs(b[static_cast<std::size_t>(j)]);
          const double between = b_error2[static_cast<std::size_t>(i)] - b_error2[static_cast<std::size_t>(j)];
          const double terms = std::sqrt(static_cast<double>(p.K + i)) + 2 + gates + std::sqrt(between);
          const double e = u * terms * entry * (matrix ? 1 : operand[static_cast<std::size_t>(j)]);
          if (std::isfinite(e)) total += e * e;
        }
        floor[static_cast<std::size_t>(s.first + (start + i) * s.stride)] = std::sqrt(total);
      }
    }
  }
}

void g_cum_floor(const Sizes& in, const Rows& rows, std::vector<double>& floor) {
  const Problem& p = in.p;
  for (const Series& s : rows.series) {
    std::vector<double> sum(static_cast<std::size_t>(p.HV), 0), own(sum.size(), 0);
    for (std::int64_t i = 0; i < s.count; ++i) {
      double total = 0;
      for (std::int64_t h = 0; h < p.HV; ++h) {
        double& b = sum[static_cast<std::size_t>(h)];
        b = (i % p.chunk ? b : 0) + in.g[in.gate_at(s.token + i, h)];
        double& error2 = own[static_cast<std::size_t>(h)];
        const double of_g = in.g_error[in.gate_at(s.token + i, h)];
        error2 = (i % p.chunk ? error2 : 0) + of_g * of_g;
        const double e =
            unit_roundoff(DType::f32) * (std::sqrt(static_cast<double>(i % p.chunk + 1)) * std::abs(b) + std::sqrt(error2));
        if (std::isfinite(e)) total += e * e;
      }
      floor[static_cast<std::size_t>(s.first + i * s.stride)] = std::sqrt(total);
    }
  }
}

void l2norm_floor(const Problem& p, const Tensors& inputs, const Rows& rows, std::vector<double>& floor) {
  const auto x = to_f64(get(inputs, "x"));
  const double terms = std::sqrt(static_cast<double>(p.K)) / 2 + 3;  // half of the sum's error; rsqrt 2, product 1
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t row = s.first + i * s.stride;
      double sum = 0;
      for (std::int64_t j = row * p.K; j < (row + 1) * p.K; ++j)
        sum += x[static_cast<std::size_t>(j)] * x[static_cast<std::size_t>(j)];
      floor[static_cast<std::size_t>(row)] = unit_roundoff(DType::f32) * terms * (sum > 0 ? 1 : 0);
    }
}

void gate_floor(const Problem& p, const Tensors& inputs, const Rows& rows, std::vector<double>& floor) {
  const auto raw = to_f64(get(inputs, "raw_gate")), bias = to_f64(get(inputs, "dt_bias"));
  const Tensor* logs = find(inputs, "A_log");
  const bool channel = p.per == "channel";
  const double u = unit_roundoff(DType::f32);
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t row = s.first + i * s.stride;
      double total = 0;
      for (std::int64_t j = 0; j < rows.width; ++j) {
        const std::int64_t head = channel ? s.head : j;
        const double x = raw[static_cast<std::size_t>(row * rows.width + j)];
        const double y = x + bias[static_cast<std::size_t>(channel ? head * p.K + j : j)];
        const double e = u * gate_error(p, y, logs, head);
        if (std::isfinite(e)) total += e * e;
      }
      floor[static_cast<std::size_t>(row)] = std::sqrt(total);
    }
}

// gdn_decode: a walk of one step whose relative errors include those of what stands before it. n: a normalised row (half of
// the sum's error, rsqrt 2, product 1); x: alpha = exp(g), by the steps of g as in gate_floor; b: beta, a sigmoid.
void decode_floor(const Problem& p, const Tensors& inputs, std::string_view tensor, const Rows& rows,
                  std::vector<double>& floor) {
  const auto packed = to_f64(get(inputs, "packed_qkv")), raw_gate = to_f64(get(inputs, "raw_gate")),
             raw_beta = to_f64(get(inputs, "raw_beta")), A_log = to_f64(get(inputs, "A_log")),
             dt_bias = to_f64(get(inputs, "dt_bias")), pool = to_f64(get(inputs, "initial_state"));
  const auto norm = [](const std::vector<double>& x, std::int64_t first, std::int64_t count) {
    double sum = 0;
    for (std::int64_t i = first; i < first + count; ++i)
      sum += x[static_cast<std::size_t>(i)] * x[static_cast<std::size_t>(i)];
    return std::sqrt(sum);
  };
  const auto slots = p.state_indices();
  const auto has = p.has_initial_state();
  const std::int64_t width = 2 * p.HK * p.K + p.HV * p.V;
  const double u = unit_roundoff(DType::f32), root = std::sqrt(static_cast<double>(p.K)) * u, b = 4 * u;
  for (const Series& s : rows.series) {
    const auto place = static_cast<std::size_t>(s.sequence), head = static_cast<std::size_t>(s.head),
               at = static_cast<std::size_t>(s.sequence * p.HV + s.head);
    if (slots[place] <= 0) continue;  // zero, exactly
    const std::int64_t first = s.sequence * width, key_head = s.head / (p.HV / p.HK);
    const double q = norm(packed, first + key_head * p.K, p.K) > 0 ? 1 : 0,
                 k = norm(packed, first + (p.HK + key_head) * p.K, p.K) > 0 ? 1 : 0, n = root / 2 + 3 * u;
    const double y = raw_gate[at] + dt_bias[head], condition = y < 0 ? -y : 1;
    const double g = std::exp(A_log[head]) * (std::max(y, 0.0) + std::log1p(std::exp(-std::abs(y))));
    const double steps = 2 + std::abs(A_log[head]) + 2 * condition + 6, decay = std::exp(-g);
    const double x = decay > 0 && g > 0 ? u * (2 + g * (1 + steps)) : 0;
    const double beta = (p.neg_eigval == Switch::on ? 2 : 1) / (1 + std::exp(-raw_beta[at]));
    double all = 0;
    for (std::int64_t v = 0; v < p.V; ++v) {
      const double value = std::abs(packed[static_cast<std::size_t>(first + 2 * p.HK * p.K + s.head * p.V + v)]);
      const double before = has[place] ? decay * norm(pool, ((slots[place] * p.HV + s.head) * p.V + v) * p.K, p.K) : 0;
      const double write = beta * std::hypot(value, k * before);  // the size of u_t, its error, the state after it
      const double error = beta * (k * (root + x + n) * before + u * value) + (b + 2 * u) * write;
      const double after = std::hypot(before, k * write);
      const double state = std::hypot(std::hypot(x * before, k * error), std::hypot(n * k * write, u * (before + after)));
      if (tensor == "final_state")
        floor[static_cast<std::size_t>(s.first + v * s.stride)] = state;
      else
        all += std::pow(p.q_scale() * q * (state + (root + n) * after), 2);
    }
    if (tensor == "o") floor[static_cast<std::size_t>(s.first)] = std::sqrt(all);
  }
}

}  // namespace

std::vector<double> rounding_floor(const Problem& problem, const Tensors& inputs, const reference::Staging& staging,
                                   std::string_view tensor, const Rows& rows) {
  std::vector<double> floor(static_cast<std::size_t>(rows.total), 0);
  if (problem.op == "l2norm") {
    l2norm_floor(problem, inputs, rows, floor);
  } else if (problem.op == "gate") {
    gate_floor(problem, inputs, rows, floor);
  } else if (problem.op == "gdn_decode") {
    decode_floor(problem, inputs, tensor, rows, floor);
  } else if (problem.op == "gdn") {
    const Sizes sizes(problem, inputs);
    if (tensor == "o" || tensor == "v_new") token_floor(sizes, staging, tensor, rows, floor);
    if (tensor == "final_state" || tensor == "S") state_floor(sizes, staging, tensor, rows, floor);
    if (tensor == "Ainv" || tensor == "Akk" || tensor == "w" || tensor == "u")
      chunk_floor(sizes, staging, tensor, rows, floor);
    if (tensor == "g_cum") g_cum_floor(sizes, rows, floor);
  }
  for (double& f : floor)
    if (!std::isfinite(f)) f = 0;  // a walk that overflows f64 earns nothing
  return floor;
}

std::vector<double> inverse_bound(const Problem& problem, const Tensors& inputs, const Rows& rows) {
  const Sizes sizes(problem, inputs);
  std::vector<double> all(static_cast<std::size_t>(rows.total * rows.width), 0);
  for (const Series& s : rows.series) {
    const auto bound = bound_of(sizes, s.head, s.token, s.count);
    for (std::int64_t i = 0; i < s.count; ++i)
      for (std::int64_t j = 0; j <= i; ++j)
        all[static_cast<std::size_t>((s.first + i * s.stride) * rows.width + j)] =
            bound[static_cast<std::size_t>(i * s.count + j)];
  }
  return all;
}

}  // namespace deltagauge::validate
