#include "reference/gdn.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"

namespace deltagauge::reference {
namespace {

constexpr Store kF64 = Store::f64;
Staging exact(std::int64_t chunk) {
  return {"test.f64", "", chunk, kF64, kF64, kF64, kF64, kF64, kF64, kF64, Accumulate::f64, Solver::fs64};
}
Staging uniform(std::int64_t chunk, Store store, Accumulate accumulate = Accumulate::f32) {
  return {"test", "", chunk, store, store, store, store, store, store, Store::f32, accumulate, Solver::block16};
}
// The problem with outputs in f64, so that what the forms compute can be seen.
Problem wide(Problem p) {
  p.io = p.state = DType::f64;
  return p;
}
Case gdn(const std::string& axes) { return parse_id("gdn/fwd/" + axes); }

double rms(const Tensor& got, const Tensor& want, std::int64_t rows) {
  double sum = 0;
  const std::int64_t count = rows * want.numel() / std::max<std::int64_t>(1, want.dim(0));
  for (std::int64_t i = 0; i < count; ++i) sum += std::pow(got.load(i) - want.load(i), 2);
  return std::sqrt(sum / static_cast<double>(std::max<std::int64_t>(1, count)));
}

// Largest ||X| |I + A||inf over the chunks: what a triangular solve can amplify a rounding by.
double condition(const Tensor& Akk, const Tensor& Ainv) {
  const std::int64_t C = Akk.dim(2);
  double largest = 1;
  for (std::int64_t block = 0; block < Akk.dim(0) * Akk.dim(1); ++block)
    for (std::int64_t i = 0; i < C; ++i) {
      double sum = 0;
      for (std::int64_t t = 0; t <= i; ++t) {
        double row = 1;
        for (std::int64_t j = 0; j < t; ++j) row += std::fabs(Akk.load((block * C + t) * C + j));
        sum += std::fabs(Ainv.load((block * C + i) * C + t)) * row;
      }
      largest = std::max(largest, sum);
    }
  return largest;
}

// No state is larger than this: tokens shrink it (beta |k|^2 <= 2) and each adds at most beta |v| |k|.
double state_bound(const Problem& p, const Tensors& inputs) {
  double v_norms = 0, h0 = 0, k_max = 0;
  const Tensor &v = get(inputs, "v"), &k = get(inputs, "k");
  for (std::int64_t row = 0; row < p.tokens(); ++row) {
    double square = 0, key = 0;
    for (std::int64_t i = 0; i < p.HV * p.V; ++i) square += std::pow(v.load(row * p.HV * p.V + i), 2);
    for (std::int64_t i = 0; i < p.HK * p.K; ++i) key += std::pow(k.load(row * p.HK * p.K + i), 2);
    v_norms += std::sqrt(square);
    k_max = std::max(k_max, std::sqrt(key));
  }
  if (const Tensor* state = find(inputs, "initial_state"))
    for (std::int64_t i = 0; i < state->numel(); ++i) h0 += std::pow(state->load(i), 2);
  return std::sqrt(h0) + 2 * v_norms * k_max;
}

TEST(Gdn, recurrent_textbook_and_staged_forms_agree_in_f64_for_every_chunk_size) {
  for (const char* axes : {"len=130+0+1+63+65,HK=2,HV=4,K=24,V=40/bf16/gate=strong/h0=normal=1",
                           "len=200,HK=1,HV=2,K=32,V=16/f16/gate=edge/h0=normal=1",
                           "len=150,HK=1,HV=2,K=32,V=16/bf16/gate=none/keys=rho=0.9/beta=near1",
                           "len=140,HK=1,HV=1,K=16,V=16/bf16/gate=mild/l2norm=on/beta=wide",
                           "len=140,HK=1,HV=2,K=16,V=16/bf16/gate=model/raw_gate=on/l2norm=on/h0=normal=1",
                           "len=140,HK=1,HV=2,K=16,V=16/f16/gate=edge/raw_gate=on/transform=bounded/h0=normal=1"}) {
    const Case c = gdn(axes);
    const Tensors inputs = make_inputs(c);
    const Problem p = wide(c.problem);
    const Tensors gold = gdn_recurrent(p, inputs, Precision::f64);
    for (std::int64_t chunk : {1, 16, 32, 64, 128}) {
      const Tensors staged = gdn_staged(p, inputs, exact(chunk), true, nullptr);
      const Tensors textbook = gdn_textbook(p, inputs, chunk, Precision::f64, false);
      // Each of T tokens adds at most (K + C + 8) roundings, amplified by the solve, relative to the largest state.
      const double roundings = static_cast<double>(p.tokens() * (p.K + chunk + 8)) * 0x1p-53;
      const double amplified = roundings * condition(get(staged, "Akk"), get(staged, "Ainv")) * state_bound(p, inputs);
      for (const char* name : {"o", "final_state"})
        for (const Tensors* form : {&staged, &textbook}) {
          const Tensor &got = get(*form, name), &want = get(gold, name);
          const double q = std::string(name) == "o" ? 2 : 1;  // scale |q| <= 1, doubled for the read's own roundings
          for (std::int64_t i = 0; i < want.numel(); ++i)
            ASSERT_LE(std::fabs(got.load(i) - want.load(i)), q * amplified)
                << axes << " C=" << chunk << " " << name << "[" << i << "]";
        }
    }
  }
}

TEST(Gdn, textbook_taps_satisfy_their_equations_with_the_staged_v_new) {
  const Case c = gdn("len=100,HK=1,HV=2,K=16,V=24/bf16/gate=mild");
  const Tensors inputs = make_inputs(c);
  const Problem p = wide(c.problem);
  const Tensors textbook = gdn_textbook(p, inputs, 64, Precision::f64, true);
  const Tensors staged = gdn_staged(p, inputs, exact(64), true, nullptr);
  const double bound = static_cast<double>(100 * (16 + 64 + 8)) * 0x1p-53 *
                       condition(get(staged, "Akk"), get(staged, "Ainv")) * state_bound(p, inputs);
  for (std::int64_t i = 0; i < get(staged, "v_new").numel(); ++i)
    ASSERT_LE(std::fabs(get(textbook, "v_new").load(i) - get(staged, "v_new").load(i)), bound);
  for (std::int64_t i = 0; i < 64 * 2 * 24; ++i)  // the first chunk starts from 0, so v_new = u
    ASSERT_EQ(get(textbook, "v_new").load(i), get(textbook, "u").load(i));
}

TEST(Gdn, lattice_inputs_give_the_same_bits_for_every_chunk_size_and_dtype) {
  for (const char* io : {"bf16", "f16"})
    for (const char* gate : {"none", "edge", "edge/raw_gate=on", "none/raw_gate=on/transform=bounded"}) {
      const Case c = gdn("len=150+17+64,HK=1,HV=2,K=32,V=16/" + std::string(io) + "/gate=" + gate +
                         "/h0=normal=1/data=lattice/scale=1");
      const Tensors inputs = make_inputs(c);
      const Tensors want = gdn_recurrent(c.problem, inputs, Precision::f64);
      for (std::int64_t chunk : {16, 32, 64, 128})
        for (Accumulate accumulate : {Accumulate::f32, Accumulate::tensor_core})
          for (Store store : {Store::io, Store::split_tf32, Store::tf32_cut}) {
            const Tensors got = gdn_staged(c.problem, inputs, uniform(chunk, store, accumulate), false, nullptr);
            for (const char* name : {"o", "final_state"})
              EXPECT_TRUE(bitwise_equal(get(got, name), get(want, name)))
                  << io << " C=" << chunk << " " << deltagauge::reference::name(accumulate) << " " << name;
          }
      EXPECT_TRUE(bitwise_equal(get(gdn_recurrent(c.problem, inputs, Precision::f32), "o"), get(want, "o")));
    }
}

TEST(Gdn, a_scaled_P_gives_the_same_bits_where_the_scale_is_a_power_of_two_and_its_tap_shows_P) {
  for (const char* axes : {"K=16/bf16/gate=mild", "K=24/f16/gate=mild", "K=16/f16/gate=edge/data=lattice/scale=0.125"}) {
    const Case c = gdn("len=70+9,HK=1,HV=2,V=16," + std::string(axes) + "/h0=normal=1");
    const Tensors inputs = make_inputs(c);
    Staging staging = uniform(64, Store::tf32, Accumulate::tensor_core);
    staging.v_new_decayed = staging.S = Store::io_scaled;
    const Tensors plain = gdn_staged(c.problem, inputs, staging, true, nullptr);
    staging.scaled_P = true;
    const Tensors scaled = gdn_staged(c.problem, inputs, staging, true, nullptr);
    int exponent = 0;
    const bool power_of_two = std::frexp(c.problem.q_scale(), &exponent) == 0.5;
    for (const char* name : {"v_new", "S", "final_state"})
      EXPECT_TRUE(bitwise_equal(get(scaled, name), get(plain, name))) << axes << " " << name;
    for (const char* name : {"o", "P"})
      EXPECT_EQ(bitwise_equal(get(scaled, name), get(plain, name)), power_of_two) << axes << " " << name;
    const Tensor &got = get(scaled, "P"), &want = get(plain, "P");
    for (std::int64_t i = 0; i < want.numel(); ++i)  // each rounded once, and more finely on the way
      ASSERT_LE(std::fabs(got.load(i) - want.load(i)), 3 * unit_roundoff(DType::f16) * std::fabs(want.load(i))) << axes;
  }
}

TEST(Gdn, folded_norms_at_least_halve_the_error_and_change_nothing_without_norms) {
  for (const char* io : {"bf16", "f16"})
    for (const bool norms : {false, true}) {
      const Case c = gdn("len=128,HK=1,HV=2,K=64,V=64/" + std::string(io) + "/gate=mild" + (norms ? "/l2norm=on" : ""));
      const Tensors inputs = make_inputs(c);
      const auto state = [&](bool folded) {
        Staging staging = uniform(64, Store::f32);
        staging.folded_norms = folded;
        return get(gdn_staged(c.problem, inputs, staging, false, nullptr), "final_state");
      };
      const Tensor rounded = state(false), kept = state(true);
      EXPECT_EQ(bitwise_equal(kept, rounded), !norms) << io;
      if (!norms) continue;
      const Tensor gold = get(gdn_recurrent(wide(c.problem), inputs, Precision::f64), "final_state");
      EXPECT_LE(rms(kept, gold, gold.dim(0)), rms(rounded, gold, gold.dim(0)) / 2) << io;
    }
}

TEST(Gdn, taps_of_folded_norms_are_those_of_unit_rows) {
  const Case c = gdn("len=70+9,HK=1,HV=2,K=64,V=64/f32/gate=mild/l2norm=on/kscale=0.01/h0=normal=1");
  const Tensors inputs = make_inputs(c);
  const auto taps = [&](bool folded) {
    Staging staging = uniform(64, Store::f64);
    staging.accumulate = Accumulate::f64;
    staging.solver = Solver::fs64;
    staging.folded_norms = folded;
    return gdn_staged(wide(c.problem), inputs, staging, true, nullptr);
  };
  const Tensors got = taps(true), want = taps(false);
  for (const char* name : {"Akk", "Ainv", "P", "S", "resid", "v_new", "o", "final_state"}) {
    const Tensor &a = get(got, name), &b = get(want, name);
    double most = 0;
    for (std::int64_t i = 0; i < b.numel(); ++i) most = std::max(most, std::fabs(b.load(i)));
    for (std::int64_t i = 0; i < b.numel(); ++i)
      if (!std::isnan(b.load(i)))
        ASSERT_LE(std::fabs(a.load(i) - b.load(i)), 8 * (64 + 64) * unit_roundoff(DType::f64) * most) << name << " " << i;
  }
}

TEST(Gdn, keeping_operands_as_pairs_at_least_halves_the_error_on_keys_that_repeat) {
  for (const char* regime : {"gate=constant=-0.00003/keys=rho=0.99/beta=near1", "gate=none/keys=rho=0.99/beta=const=0.835",
                             "gate=none/keys=repeated/beta=const=0.835", "gate=mild/keys=alternating/beta=const=0.835"})
    for (const char* io : {"bf16", "f16"}) {
      const Case c = gdn("len=128,HK=1,HV=2,K=64,V=64/" + std::string(io) + "/" + regime);
      const Tensors inputs = make_inputs(c);
      const Tensors gold = gdn_recurrent(wide(c.problem), inputs, Precision::f64);
      const auto error = [&](Store store) {
        return rms(get(gdn_staged(c.problem, inputs, uniform(64, store), false, nullptr), "o"), get(gold, "o"), 128);
      };
      EXPECT_LE(error(Store::split), error(Store::io) / 2) << regime << " " << io;
      EXPECT_LE(error(Store::f32), error(Store::split)) << regime << " " << io;
    }
}

TEST(Gdn, scaled_stores_keep_a_state_that_f16_cannot_hold) {
  const Case c = gdn("len=128,HK=1,HV=1,K=32,V=32/f16/gate=mild/v=normal=0.5/h0=normal=1e6/scale=1e-6");
  const Tensors inputs = make_inputs(c);
  const Tensors gold = gdn_recurrent(wide(c.problem), inputs, Precision::f64);
  Staging staging = uniform(64, Store::split_tf32, Accumulate::tensor_core);
  staging.S = Store::io_scaled;
  staging.v_new_decayed = Store::split_scaled;
  const Tensors got = gdn_staged(c.problem, inputs, staging, false, nullptr);
  double size = 0;
  for (std::int64_t i = 0; i < get(gold, "final_state").numel(); ++i) size += std::pow(get(gold, "final_state").load(i), 2);
  size = std::sqrt(size / static_cast<double>(get(gold, "final_state").numel()));
  // Two roundings of S to f16 (one a chunk) enter the state through K-long sums.
  EXPECT_LE(rms(get(got, "final_state"), get(gold, "final_state"), 1), 2 * 32 * unit_roundoff(DType::f16) * size);
  staging.S = Store::io;
  EXPECT_FALSE(std::isfinite(rms(get(gdn_staged(c.problem, inputs, staging, false, nullptr), "o"), get(gold, "o"), 128)));
}

TEST(Gdn, closed_and_enormous_gates_leave_later_decays_alone) {
  Case c = gdn("len=64,HK=1,HV=1,K=16,V=16/bf16/gate=constant=-0.125/h0=normal=1");
  for (double early : {-300.0, -1e38, -std::numeric_limits<double>::infinity()}) {
    c.overrides = {{"g", {"2", "*"}, early}};
    const Tensors inputs = make_inputs(c);
    for (MathMode math : {MathMode::precise, MathMode::fast}) {
      c.problem.math = math;
      for (Store store : {Store::f32, Store::io}) {
        const Tensors got = gdn_staged(c.problem, inputs, uniform(64, store), false, nullptr);
        c.overrides = {{"g", {"2", "*"}, -110}};  // already 0 in f32
        const Tensors want = gdn_staged(c.problem, make_inputs(c), uniform(64, store), false, nullptr);
        for (const char* name : {"o", "final_state"}) EXPECT_TRUE(bitwise_equal(get(got, name), get(want, name))) << early;
      }
    }
  }
}

TEST(Gdn, a_raw_gate_gives_the_bits_of_the_gate_op_before_the_call) {
  for (const char* axes : {"gate=model", "gate=edge/fast", "gate=mild/a_log=off", "gate=mild/transform=bounded/lb=-4",
                           "gate=edge/transform=bounded/fast", "gate=model/transform=bounded/a_log=off"}) {
    const Case raw = gdn("len=70+0+9,HK=1,HV=3,K=16,V=8,cap=90/bf16/h0=normal=1/raw_gate=on/" + std::string(axes));
    const Tensors inputs = make_inputs(raw);
    Problem gate = raw.problem, plain = raw.problem;
    gate.op = "gate";
    gate.io = raw.problem.gate_dtype;
    plain.raw_gate = Switch::off;
    Tensors transformed = inputs;
    transformed["g"] = get(run(gate, inputs, staging("gate.f32"), false), "g");
    for (const char* name : {"recurrent.f32", "chunk64.io", "chunk_sm80.plain", "chunk_sm90.plain"}) {
      const Tensors got = run(raw.problem, inputs, staging(name), false),
                    want = run(plain, transformed, staging(name), false);
      for (const auto& [tensor, t] : want) EXPECT_TRUE(bitwise_equal(get(got, tensor), t)) << axes << " " << name;
    }
  }
}

TEST(Gdn, results_do_not_depend_on_the_number_of_threads) {
  const Case c = gdn("len=130+70+1,HK=2,HV=4,K=32,V=32/bf16/gate=strong/h0=normal=1");
  const Tensors inputs = make_inputs(c);
  const int threads = omp_get_max_threads();
  for (const char* name : {"recurrent.f32", "chunk64.io", "chunk64.io.tc", "chunk64.f64"}) {
    Ranges ranges_one, ranges_four;
    omp_set_num_threads(1);
    const Tensors one = run(c.problem, inputs, staging(name), true, &ranges_one);
    omp_set_num_threads(4);
    const Tensors four = run(c.problem, inputs, staging(name), true, &ranges_four);
    omp_set_num_threads(threads);
    for (const auto& [tensor_name, t] : one)
      EXPECT_TRUE(bitwise_equal(t, get(four, tensor_name))) << name << " " << tensor_name;
    EXPECT_EQ(ranges_one.size(), ranges_four.size());
    for (const auto& [tap, range] : ranges_one) EXPECT_EQ(range.max_abs, ranges_four[tap].max_abs) << tap;
  }
}

TEST(Gdn, a_packed_run_has_the_bits_of_separate_runs) {
  Case c = gdn("len=130+70,HK=1,HV=2,K=32,V=32/bf16/gate=strong");
  const Tensors packed = run(c.problem, make_inputs(c), staging("chunk64.io.tc"), false);
  c.problem.lengths = {70};
  c.problem.ids = {1};
  const Tensors alone = run(c.problem, make_inputs(c), staging("chunk64.io.tc"), false);
  EXPECT_TRUE(bitwise_equal(rows(get(packed, "o"), 130, 70), get(alone, "o")));
  EXPECT_TRUE(bitwise_equal(rows(get(packed, "final_state"), 1, 1), get(alone, "final_state")));
}

}  // namespace
}  // namespace deltagauge::reference
