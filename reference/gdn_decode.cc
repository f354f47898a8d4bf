#include "reference/gdn_decode.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "reference/gate.h"
#include "reference/gdn_data.h"

namespace deltagauge::reference {
namespace {

float fma_f32(float a, float b, float c) { return static_cast<float>(static_cast<double>(a) * b + c); }

// Sums over K channels as a warp makes them: every lane a chain over its packs of 16 bytes of the pool, then pairs of lanes.
class Lanes {
 public:
  Lanes(std::int64_t K, DType state)
      : pack_(state == DType::f32 ? 4 : 8),
        padded_(K <= 64    ? 64
                : K <= 128 ? 128
                           : 256),
        lanes_(std::min<std::int64_t>(32, padded_ / pack_)) {}
  std::size_t padded() const { return static_cast<std::size_t>(padded_); }

  float dot(const float* a, const float* b) const {
    std::array<float, 32> sum{};
    for (std::int64_t first = 0; first < padded_; first += lanes_ * pack_)
      for (std::int64_t e = 0; e < pack_; ++e)
        for (std::int64_t l = 0; l < lanes_; ++l) {
          const std::int64_t c = first + l * pack_ + e;
          sum[static_cast<std::size_t>(l)] = fma_f32(a[c], b[c], sum[static_cast<std::size_t>(l)]);
        }
    for (auto half = static_cast<std::size_t>(lanes_ / 2); half > 0; half /= 2)
      for (std::size_t l = 0; l < half; ++l) sum[l] += sum[l + half];
    return sum[0];
  }

 private:
  std::int64_t pack_, padded_, lanes_;
};

struct Decode {
  const Problem& p;
  const Tensors& inputs;
  DecodeSlip slip;
  std::vector<float> packed = f32("packed_qkv"), raw_gate = f32("raw_gate"), raw_beta = f32("raw_beta"),
                     A_log = f32("A_log"), dt_bias = f32("dt_bias"), pool = f32("initial_state");
  std::vector<std::int64_t> slots = p.state_indices();
  std::vector<bool> has = p.has_initial_state();
  Lanes lanes{p.K, p.state};

  Decode(const Problem& problem, const Tensors& tensors, DecodeSlip which) : p(problem), inputs(tensors), slip(which) {}
  std::vector<float> f32(std::string_view name) const {
    const std::vector<double> wide = to_f64(get(inputs, name));
    return std::vector<float>(wide.begin(), wide.end());
  }
  bool is(DecodeSlip which) const { return slip == which; }

  // A row of q (section 0) or k (1), zero past K.
  std::vector<float> key(std::int64_t section, std::int64_t n, std::int64_t h) const {
    const std::int64_t head = is(DecodeSlip::head_map_modulo) ? h % p.HK : h / (p.HV / p.HK);
    const float* from = packed.data() + n * width() + (section * p.HK + head) * p.K;
    std::vector<float> row(lanes.padded());
    std::copy_n(from, p.K, row.data());
    if (section == 0 && is(DecodeSlip::query_raw)) return row;
    const float eps = static_cast<float>(kL2Eps * (is(DecodeSlip::eps_on_mean) ? static_cast<double>(p.K) : 1));
    float square = lanes.dot(row.data(), row.data()), down = 1;
    if (std::isinf(square)) {  // the sum passes f32, the row's entries need not
      down = 0x1p-96f;
      for (float& x : row) x *= down;
      square = lanes.dot(row.data(), row.data());
    }
    const float r = 1 / std::sqrt(down == 1 ? square + eps : square);
    for (float& x : row) x *= r;
    return row;
  }
  std::int64_t width() const { return 2 * p.HK * p.K + p.HV * p.V; }

  float alpha(std::int64_t n, std::int64_t h) const {
    const auto head = static_cast<std::size_t>(h), at = static_cast<std::size_t>(n * p.HV + h);
    const float y = raw_gate[at] + (is(DecodeSlip::dt_bias_missing) ? 0 : dt_bias[head]);
    const Rate rate = is(DecodeSlip::A_log_linear) ? Rate{A_log[head], 0} : rate_of(A_log[head]);
    float g = softplus_gate(p.math, y, rate);
    if (is(DecodeSlip::gate_bounded)) g = -5 * sigmoid(p.math, rate.a * y);
    if (is(DecodeSlip::exp2_for_exp)) return std::exp2(g);
    return decay(p.math, g);
  }
  float beta(std::int64_t n, std::int64_t h) const {
    const float raw = raw_beta[static_cast<std::size_t>(n * p.HV + h)];
    float beta = is(DecodeSlip::beta_raw) ? raw : sigmoid(p.math, raw);
    if (is(DecodeSlip::beta_bf16)) beta = round_bf16(beta);
    return p.neg_eigval == Switch::on && !is(DecodeSlip::neg_eigval_ignored) ? 2 * beta : beta;
  }

  // The slot that a sequence starts from; 0: a state of zero.
  std::int64_t source(std::int64_t n) const {
    const auto place = static_cast<std::size_t>(is(DecodeSlip::slot_of_next) ? (n + 1) % p.sequences() : n);
    const bool read = (has[place] || is(DecodeSlip::flag_ignored)) && !is(DecodeSlip::state_ignored);
    return read ? std::max<std::int64_t>(slots[place], 0) : 0;
  }

  void head(std::int64_t n, std::int64_t h, Tensors& outputs) const {
    const std::int64_t slot = slots[static_cast<std::size_t>(n)];
    if (slot <= 0 && !is(DecodeSlip::no_slot_computed)) return;
    const std::vector<float> q = key(0, n, h), k = key(1, n, h);
    const float a = alpha(n, is(DecodeSlip::gate_of_head0) ? 0 : h), b = beta(n, h),
                seen_decay = is(DecodeSlip::error_before_decay) ? 1 : a;
    const float kq = lanes.dot(k.data(), q.data());
    const float scale = is(DecodeSlip::scale_missing) ? 1 : static_cast<float>(p.q_scale());
    const float* v = packed.data() + n * width() + 2 * p.HK * p.K + h * p.V;
    Tensor &o = outputs.find("o")->second, &states = outputs.find("final_state")->second;
    std::vector<float> S(lanes.padded());
    for (std::int64_t c = 0; c < p.V; ++c) {
      const auto row = [&](std::int64_t of) { return ((of * p.HV + h) * p.V + c) * p.K; };
      std::ranges::fill(S, 0.0f);
      if (const std::int64_t from = source(n); from > 0 && a != 0) std::copy_n(pool.data() + row(from), p.K, S.data());
      const float u = b * (v[c] - seen_decay * lanes.dot(S.data(), k.data()));
      const float write = is(DecodeSlip::read_before_write) ? 0 : u * kq;
      o.store((n * p.HV + h) * p.V + c, scale * fma_f32(a, lanes.dot(S.data(), q.data()), write));
      if (slot <= 0) continue;
      for (std::int64_t j = 0; j < p.K; ++j) {
        const auto at = static_cast<std::size_t>(j);
        const float next = fma_f32(u, k[at], a * S[at]);
        states.store(row(slot) + j, is(DecodeSlip::state_bf16) ? round_bf16(next) : next);
      }
    }
  }
};

}  // namespace

Tensors gdn_decode(const Problem& problem, const Tensors& inputs, DecodeSlip slip) {
  Tensors outputs = unwritten_outputs(problem);
  const Decode decode(problem, inputs, slip);
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t task = 0; task < problem.sequences() * problem.HV; ++task)
    decode.head(task / problem.HV, task % problem.HV, outputs);
  return outputs;
}

}  // namespace deltagauge::reference
