// gdn_decode against a second derivation: the step multiplied out, as sums over the inputs alone, in 113 bits.
//   S' = alpha S (I - beta k k^T) + beta v k^T
//   o  = scale (alpha S q - alpha beta (S k)(k.q) + beta v (k.q)),  k = k_raw / |k_raw|_eps, alpha = (1 + e^y)^-a
#include "oracle/gdn_decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/inputs.h"
#include "oracle/error_bound.h"
#include "oracle/real_wide.h"

namespace deltagauge::oracle {
namespace {

struct Derived {
  std::vector<Quad> o, state;  // [B, HV, V], [P, HV, V, K]
};

Derived derive(const Problem& p, const Tensors& inputs) {
  const auto x = to_f64(get(inputs, "packed_qkv")), pool = to_f64(get(inputs, "initial_state"));
  const std::int64_t width = 2 * p.HK * p.K + p.HV * p.V;
  const auto slots = p.state_indices();
  const auto has = p.has_initial_state();
  Derived out;
  out.o.resize(static_cast<std::size_t>(p.sequences() * p.HV * p.V));
  out.state.resize(pool.size());
  for (std::int64_t n = 0; n < p.sequences(); ++n)
    for (std::int64_t h = 0; h < p.HV; ++h) {
      const std::int64_t slot = slots[static_cast<std::size_t>(n)];
      if (slot <= 0) continue;
      const auto value = [&](std::int64_t i) { return Quad(x[static_cast<std::size_t>(n * width + i)]); };
      const std::int64_t group = h / (p.HV / p.HK), q0 = group * p.K, k0 = (p.HK + group) * p.K,
                         v0 = 2 * p.HK * p.K + h * p.V;
      Quad qq = Quad(1) / Quad(1000000), kk = qq, kq = 0;
      for (std::int64_t j = 0; j < p.K; ++j) {
        qq += value(q0 + j) * value(q0 + j);
        kk += value(k0 + j) * value(k0 + j);
        kq += value(k0 + j) * value(q0 + j);
      }
      kq /= sqrt(qq) * sqrt(kk);
      const Quad y = Quad(get(inputs, "raw_gate").at({n, h})) + Quad(get(inputs, "dt_bias").at({h}));
      const Quad alpha = pow(1 + exp(y), -exp(Quad(get(inputs, "A_log").at({h}))));
      const Quad beta = Quad(p.neg_eigval == Switch::on ? 2 : 1) / (1 + exp(-Quad(get(inputs, "raw_beta").at({n, h}))));
      const Quad scale(static_cast<double>(static_cast<float>(p.q_scale())));
      for (std::int64_t c = 0; c < p.V; ++c) {
        const std::int64_t row = ((slot * p.HV + h) * p.V + c) * p.K;
        const auto S = [&](std::int64_t j) {
          return has[static_cast<std::size_t>(n)] ? Quad(pool[static_cast<std::size_t>(row + j)]) : Quad(0);
        };
        Quad Sk = 0, Sq = 0;
        for (std::int64_t j = 0; j < p.K; ++j) {
          Sk += S(j) * value(k0 + j) / sqrt(kk);
          Sq += S(j) * value(q0 + j) / sqrt(qq);
        }
        const Quad v = value(v0 + c);
        const auto at = static_cast<std::size_t>((n * p.HV + h) * p.V + c);
        out.o[at] = scale * (alpha * Sq - alpha * beta * Sk * kq + beta * v * kq);
        for (std::int64_t j = 0; j < p.K; ++j) {
          const Quad k = value(k0 + j) / sqrt(kk);
          out.state[static_cast<std::size_t>(row + j)] = alpha * S(j) - alpha * beta * Sk * k + beta * v * k;
        }
      }
    }
  return out;
}

constexpr const char* kCases[] = {
    "gdn_decode/fwd/len=1x5,HK=2,HV=4,K=20,V=12/bf16/gate=model/h0=normal=1/slots=8/idx=holes=5/has=mixed/seed=1",
    "gdn_decode/fwd/len=1x3,HK=1,HV=3,K=64,V=5/f16/gate=strong/h0=normal=100/slots=4/idx=permuted=2/scale=1/seed=2",
    "gdn_decode/fwd/len=1x3,HK=2,HV=2,K=33,V=7/f32/gate=mild/kscale=0.0001/h0=normal=1/slots=4/has=0+1+1/seed=3",
    "gdn_decode/fwd/len=1x4,HK=1,HV=2,K=16,V=4/bf16/gate=constant=-0.5/beta=wide/neg_eigval=on/h0=normal=1/slots=9/"
    "slot_pad=3/state=bf16/seed=4"};

TEST(GdnDecode, TheStepMultipliedOutGivesTheSameAnswer) {
  for (const char* id : kCases) {
    const Case c = parse_id(id);
    const Problem& p = c.problem;
    const Tensors inputs = make_inputs(c);
    const Derived want = derive(p, inputs);
    for (const auto& [precision, arithmetic] : {std::pair{Precision::f64, kF64}, {Precision::dd, kDd}}) {
      const Answer got = answer(p, inputs, {.precision = precision});
      const Bounds bounds = gdn_decode_bounds(p, inputs, arithmetic);
      const auto expect = [&](const char* name, const std::vector<Quad>& right, const std::vector<double>& bound,
                              std::size_t first, std::size_t count) {
        for (std::size_t i = first; i < first + count; ++i) {
          const Quad rounding = 0x1p-53 * abs(right[i]);  // of the answer to f64
          EXPECT_LE(abs(Quad(got.outputs.at(name).as<double>()[i]) - right[i]), bound[i] + rounding) << id << name << i;
        }
      };
      expect("o", want.o, bounds.o, 0, want.o.size());
      const auto slot_size = static_cast<std::size_t>(p.HV * p.V * p.K);
      for (const std::int64_t slot : p.state_indices())
        if (slot > 0) expect("final_state", want.state, bounds.state, static_cast<std::size_t>(slot) * slot_size, slot_size);
    }
  }
}

TEST(GdnDecode, ALimitOfTheGateWipesOrKeepsTheState) {
  const std::string base = "gdn_decode/fwd/len=1x2,HK=1,HV=1,K=4,V=3/f32/gate=mild/beta=const=0/h0=normal=1/slots=3/";
  const Case c = parse_id(base + "raw_gate[0,0]=inf/raw_gate[1,0]=-inf/seed=5");
  const Tensors inputs = make_inputs(c);
  for (const Precision precision : {Precision::f64, Precision::dd, Precision::quad, Precision::oct}) {
    const Answer got = answer(c.problem, inputs, {.precision = precision});
    const auto state = to_f64(got.outputs.at("final_state")), before = to_f64(get(inputs, "initial_state"));
    for (std::size_t i = 0; i < 12; ++i) {
      EXPECT_EQ(state[12 + i], 0) << name(precision);               // slot 1
      EXPECT_EQ(state[24 + i], before[24 + i]) << name(precision);  // slot 2
    }
  }
}

TEST(GdnDecode, SequencesWithoutASlotReadZeroAndOthersAreNotAnswered) {
  const Case c =
      parse_id("gdn_decode/fwd/len=1x3,HK=1,HV=2,K=4,V=3,cap=5/bf16/gate=mild/h0=normal=1/slots=6/idx=0+5+-1/seed=6");
  const Answer got = answer(c.problem, make_inputs(c));
  const auto o = to_f64(got.outputs.at("o")), state = to_f64(got.outputs.at("final_state"));
  for (std::size_t i = 0; i < o.size(); ++i) {
    const std::size_t row = i / 6;
    EXPECT_EQ(o[i] == 0, row == 0 || row == 2) << i;
    EXPECT_EQ(std::isnan(o[i]), row > 2) << i;
  }
  for (std::size_t i = 0; i < state.size(); ++i) EXPECT_EQ(std::isnan(state[i]), i / 24 != 5) << i;
}

}  // namespace
}  // namespace deltagauge::oracle
