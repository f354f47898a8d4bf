// gdn_decode against a second derivation: the step multiplied out, as sums over the inputs alone, in 113 bits.
//   S' = alpha S (I - beta k k^T) + beta v k^T
//   o  = scale (alpha S q - alpha beta (S k)(k.q) + beta v (k.q)),  k = k_raw / |k_raw|_eps, alpha = (1 + e^y)^-a
#include "oracle/gdn_decode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"
#include "oracle/real_wide.h"

namespace deltagauge::oracle {
namespace {

struct Derived {
  std::vector<Quad> o, state;            // [B, HV, V], [P, HV, V, K]
  std::vector<Quad> o_size, state_size;  // sums of the magnitudes of their terms
};

Derived derive(const Problem& p, const Tensors& inputs) {
  const auto x = to_f64(get(inputs, "packed_qkv")), pool = to_f64(get(inputs, "initial_state"));
  const std::int64_t width = 2 * p.HK * p.K + p.HV * p.V;
  const auto slots = p.state_indices();
  const auto has = p.has_initial_state();
  Derived out;
  out.o.resize(static_cast<std::size_t>(p.sequences() * p.HV * p.V));
  out.state.resize(pool.size());
  out.o_size = out.o;
  out.state_size = out.state;
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
        Quad Sk = 0, Sq = 0, Sk_size = 0, Sq_size = 0;
        for (std::int64_t j = 0; j < p.K; ++j) {
          const Quad a = S(j) * value(k0 + j) / sqrt(kk), b = S(j) * value(q0 + j) / sqrt(qq);
          Sk += a, Sq += b, Sk_size += abs(a), Sq_size += abs(b);
        }
        const Quad v = value(v0 + c);
        const auto at = static_cast<std::size_t>((n * p.HV + h) * p.V + c);
        out.o[at] = scale * (alpha * Sq - alpha * beta * Sk * kq + beta * v * kq);
        out.o_size[at] = scale * (alpha * Sq_size + alpha * beta * Sk_size + beta * abs(v));  // |k|, |q| <= 1
        for (std::int64_t j = 0; j < p.K; ++j) {
          const Quad k = value(k0 + j) / sqrt(kk);
          const auto place = static_cast<std::size_t>(row + j);
          out.state[place] = alpha * S(j) - alpha * beta * Sk * k + beta * v * k;
          out.state_size[place] = alpha * abs(S(j)) + (alpha * beta * Sk_size + beta * abs(v)) * abs(k);
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

// Each operation of the oracle is off by u of its result at most; the longest chain of them, over the terms of one sum, is a
// dot product of K and some two dozen of the gate, beta and the norms, whose errors the terms carry as factors. exp(g) adds
// |g| u. 2^-96 bounds exp and log1p of a pair of doubles.
TEST(GdnDecode, TheStepMultipliedOutGivesTheSameAnswer) {
  for (const char* id : kCases) {
    const Case c = parse_id(id);
    const Problem& p = c.problem;
    const Tensors inputs = make_inputs(c);
    const Derived want = derive(p, inputs);
    const struct {
      Precision precision;
      double u;
    } rows[] = {{Precision::f64, 0x1p-53}, {Precision::dd, 0x1p-96}};
    for (const auto& row : rows) {
      const Answer got = answer(p, inputs, {.precision = row.precision});
      const double chain = (static_cast<double>(p.K) + 64) * row.u + 0x1p-53;  // and the rounding of the answer to f64
      for (std::size_t i = 0; i < want.o.size(); ++i)
        EXPECT_LE(abs(Quad(got.outputs.at("o").as<double>()[i]) - want.o[i]), chain * want.o_size[i]) << id << " o " << i;
      for (const std::int64_t slot : p.state_indices())
        for (std::int64_t j = 0; slot > 0 && j < p.HV * p.V * p.K; ++j) {
          const auto i = static_cast<std::size_t>(slot * p.HV * p.V * p.K + j);
          EXPECT_LE(abs(Quad(got.outputs.at("final_state").as<double>()[i]) - want.state[i]), chain * want.state_size[i])
              << id << " final_state " << i;
        }
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
