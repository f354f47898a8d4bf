// What the oracle means, by hand-made inputs with known answers, and what it refuses.
#include "oracle/oracle.h"

#include <gtest/gtest.h>
#include <omp.h>

#include <cmath>
#include <limits>

#include "core/error.h"
#include "core/inputs.h"
#include "oracle/certify.h"
#include "oracle/error_bound.h"

namespace deltagauge::oracle {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// A gdn call whose inputs are all zero, gate 0 and beta 0, to be filled in by hand. f32 so that hand values are exact.
struct Probe {
  Problem problem;
  Tensors inputs;
  explicit Probe(const std::string& id) : problem(parse_id(id).problem), inputs(make_inputs(parse_id(id))) {
    for (auto& [name, tensor] : inputs)
      if (name != "cu_seqlens") tensor = Tensor(tensor.dtype(), tensor.shape());
  }
  Tensor& operator[](const char* name) { return inputs.find(name)->second; }
  Answer run(const Options& options = {}) const { return answer(problem, inputs, options); }
};

const Precision kAll[] = {Precision::automatic, Precision::f64, Precision::dd, Precision::quad, Precision::oct};

class Meaning : public testing::TestWithParam<Precision> {
 protected:
  Options options{.precision = GetParam()};
};
INSTANTIATE_TEST_SUITE_P(Oracle, Meaning, testing::ValuesIn(kAll),
                         [](const auto& test) { return std::string(name(test.param)); });

TEST_P(Meaning, DecayComesBeforeTheError) {  // S0 = I, k = e0, v = 0, beta = 1, g = -1: the old value is wiped, not e^-1 - 1
  Probe probe("gdn/fwd/len=1,HK=1,HV=1,K=4,V=4/f32/h0=normal=1/seed=0");
  for (std::int64_t i = 0; i < 4; ++i) probe["initial_state"].set({0, 0, i, i}, 1);
  probe["k"].set({0, 0, 0}, 1);
  probe["beta"].set({0, 0}, 1);
  probe["g"].set({0, 0}, -1);
  const Answer a = probe.run(options);
  EXPECT_EQ(get(a.outputs, "final_state").at({0, 0, 0, 0}), 0);
  EXPECT_EQ(get(a.outputs, "final_state").at({0, 0, 1, 1}), std::exp(-1.0));
}

TEST_P(Meaning, StateIsValueRowsByKeyColumns) {  // one entry S[v = 5, k = 3] read by q = e3 gives scale e5
  Probe probe("gdn/fwd/len=66,HK=1,HV=1,K=4,V=8/f32/h0=normal=1/scale=0.25/seed=0");
  probe["initial_state"].set({0, 0, 5, 3}, 1);
  for (std::int64_t t = 0; t < 66; ++t) probe["q"].set({t, 0, 3}, 1);
  const Answer a = probe.run(options);
  for (std::int64_t t = 0; t < 66; ++t)
    for (std::int64_t v = 0; v < 8; ++v) EXPECT_EQ(get(a.outputs, "o").at({t, 0, v}), v == 5 ? 0.25 : 0);
}

TEST_P(Meaning, ValueHeadsShareKeyHeadsByDivision) {  // k of key head x is e_x: value head 1 reads key head 0, not 1
  Probe probe("gdn/fwd/len=1,HK=2,HV=4,K=4,V=2/f32/scale=1/seed=0");
  for (std::int64_t x = 0; x < 2; ++x) {
    probe["k"].set({0, x, x}, 1);
    probe["q"].set({0, x, 0}, 1);
  }
  for (std::int64_t h = 0; h < 4; ++h) {
    probe["beta"].set({0, h}, 1);
    probe["v"].set({0, h, 0}, 1);
  }
  const Answer a = probe.run(options);
  for (std::int64_t h = 0; h < 4; ++h) EXPECT_EQ(get(a.outputs, "o").at({0, h, 0}), h < 2 ? 1 : 0) << h;
}

TEST_P(Meaning, AnInfiniteGateWipesTheStateAndAZeroGateKeepsIt) {
  for (const auto& [g, kept] : {std::pair{-kInf, 0.0}, {-1e38, 0.0}, {0.0, 1.0}, {-0.0, 1.0}}) {
    Probe probe("gdn/fwd/len=1,HK=1,HV=1,K=2,V=2/f32/h0=normal=1/seed=0");
    probe["initial_state"].set({0, 0, 1, 1}, 3);
    probe["g"].set({0, 0}, g);
    EXPECT_EQ(get(probe.run(options).outputs, "final_state").at({0, 0, 1, 1}), 3 * kept) << g;
  }
}

TEST_P(Meaning, TheNormIsOverTheSumPlusEps) {  // K = 128 entries of a: a / sqrt(128 a^2 + 1e-6)
  for (const double a : {1e-3, 1e-4, 1.0, 0.0}) {
    const Problem p = parse_id("l2norm/fwd/len=1,HK=1,K=128/f32/seed=0").problem;
    Tensors inputs = make_inputs(parse_id("l2norm/fwd/len=1,HK=1,K=128/f32/seed=0"));
    for (std::int64_t j = 0; j < 128; ++j) inputs["x"].set({0, 0, j}, a);
    const double x = static_cast<float>(a), want = x / std::sqrt(128 * x * x + 1e-6);
    const double got = get(answer(p, inputs, options).outputs, "y").at({0, 0, 7});
    EXPECT_LE(std::abs(got - want), (128 + 8) * 0x1p-53 * want) << "128 squares, and a handful of roundings on each side";
  }
}

TEST_P(Meaning, FusedNormIsTheNormOpThenTheRecurrence) {  // o of one token from a zero state is beta (q . k) v
  Probe probe("gdn/fwd/len=1,HK=1,HV=1,K=4,V=2/f32/l2norm=on/scale=1/seed=0");
  for (std::int64_t j = 0; j < 4; ++j) {
    probe["q"].set({0, 0, j}, 1e-3);
    probe["k"].set({0, 0, j}, 1);
  }
  probe["beta"].set({0, 0}, 1);
  probe["v"].set({0, 0, 0}, 1);
  const double x = static_cast<float>(1e-3), want = 4 * x / std::sqrt(4 * x * x + 1e-6) / std::sqrt(4 + 1e-6);
  EXPECT_LE(std::abs(get(probe.run(options).outputs, "o").at({0, 0, 0}) - want), 32 * 0x1p-53 * want)
      << "32 roundings at most";
}

// One raw value a token through the gate op.
std::vector<double> gate_of(const std::string& axes, const std::vector<double>& raw, std::optional<double> A_log,
                            const Options& options) {
  const Case c = parse_id("gate/fwd/len=" + std::to_string(raw.size()) + ",HV=1/f32/" + axes + "/seed=0");
  Tensors inputs = make_inputs(c);
  inputs["dt_bias"] = Tensor(DType::f32, {1});
  for (std::size_t t = 0; t < raw.size(); ++t) inputs["raw_gate"].set({static_cast<std::int64_t>(t), 0}, raw[t]);
  if (A_log) inputs["A_log"].set({0}, *A_log);
  return to_f64(get(answer(c.problem, inputs, options).outputs, "g"));
}

TEST_P(Meaning, SoftplusMeetsItsExtremes) {  // -exp(A_log) softplus(y): linear above, exponential below, never inf or NaN
  const std::vector<double> y{-1e4, -100, -88, -20, 0, 1e-3, 19.9, 20, 20.1, 87, 88, 89, 100, 1e4, kInf, -kInf};
  const std::vector<double> g = gate_of("transform=softplus", y, -5, options);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const double x = static_cast<float>(y[i]),
                 want = -std::exp(-5.0) * (std::fmax(x, 0) + std::log1p(std::exp(-std::abs(x))));
    EXPECT_LE(ulp_distance(DType::f64, g[i], want), 16) << "y " << x << ": a few roundings on each side";
  }
}

TEST_P(Meaning, TheBoundedGateStaysBetweenItsLimits) {
  const std::vector<double> y{-kInf, -1e4, -88, -20, 0, 20, 88, 1e4, kInf};
  for (const double A_log : {0.0, static_cast<double>(static_cast<float>(std::log(16.0)))}) {
    const std::vector<double> g = gate_of("transform=bounded/lb=-5", y, A_log, options);
    for (std::size_t i = 0; i < y.size(); ++i) {
      EXPECT_LE(g[i], 0);
      EXPECT_GE(g[i], -5);
      EXPECT_LE(g[i], g[i > 0 ? i - 1 : 0]);
    }
    EXPECT_EQ(g.front(), 0);
    EXPECT_EQ(g[1], 0);
    EXPECT_EQ(g[4], -2.5);
    EXPECT_EQ(g[7], -5);
    EXPECT_EQ(g.back(), -5);
  }
}

TEST_P(Meaning, NoALogIsAnALogOfZeroBitForBit) {
  const std::vector<double> y{-30, -3.7, -0.1, 0, 0.2, 5.5, 40};
  for (const std::string transform : {"transform=bounded/lb=-5", "transform=softplus"}) {
    const std::vector<double> zero = gate_of(transform, y, 0, options),
                              absent = gate_of(transform + "/a_log=off", y, {}, options);
    for (std::size_t i = 0; i < y.size(); ++i)
      EXPECT_EQ(std::bit_cast<std::uint64_t>(zero[i]), std::bit_cast<std::uint64_t>(absent[i])) << transform << " " << y[i];
  }
}

// One token a head, S0 = I, k = v = 0: the state's diagonal is exp(g).
std::vector<double> decay_of(const std::string& axes, const std::vector<double>& raw, std::optional<double> A_log,
                             const Options& options) {
  Probe probe("gdn/fwd/len=1,HK=1,HV=" + std::to_string(raw.size()) + ",K=2,V=2/f32/raw_gate=on/h0=normal=1/" + axes);
  for (std::size_t n = 0; n < raw.size(); ++n) {
    const auto h = static_cast<std::int64_t>(n);
    probe["raw_gate"].set({0, h}, raw[n] / 2);
    probe["dt_bias"].set({h}, raw[n] / 2);
    if (A_log) probe["A_log"].set({h}, *A_log);
    for (std::int64_t i = 0; i < 2; ++i) probe["initial_state"].set({0, h, i, i}, 1);
  }
  const Answer a = probe.run(options);
  std::vector<double> decays;
  for (std::size_t n = 0; n < raw.size(); ++n)
    decays.push_back(get(a.outputs, "final_state").at({0, static_cast<std::int64_t>(n), 1, 1}));
  return decays;
}

TEST_P(Meaning, ARawGateDecaysAsItsTransformSays) {
  const std::vector<double> y{-kInf, -200, -1, 0, 0.5, 20, 89, 1e4, kInf};
  for (const std::string axes : {"transform=softplus", "transform=bounded/lb=-4"}) {
    const std::vector<double> g = gate_of(axes, y, -1, options), decay = decay_of(axes, y, -1, options),
                              zero = decay_of(axes, y, 0, options), absent = decay_of(axes + "/a_log=off", y, {}, options);
    for (std::size_t i = 0; i < y.size(); ++i) {
      const double want = std::exp(g[i]);  // of a g rounded to f64
      EXPECT_LE(std::abs(decay[i] - want), (std::isinf(g[i]) ? 0 : 2 + std::abs(g[i])) * 0x1p-52 * want) << axes << y[i];
      EXPECT_EQ(std::bit_cast<std::uint64_t>(zero[i]), std::bit_cast<std::uint64_t>(absent[i])) << axes << " " << y[i];
    }
    EXPECT_EQ(decay.front(), 1);
  }
  EXPECT_EQ(decay_of("transform=softplus", y, -1, options).back(), 0);
  EXPECT_LE(std::abs(decay_of("transform=softplus", {0}, 0, options)[0] - 0.5), 0x1p-53);
  EXPECT_LE(std::abs(decay_of("transform=bounded/lb=-5", {0}, 0, options)[0] - std::exp(-2.5)), 0x1p-53);
}

TEST_P(Meaning, TheTwoTransformsDiffer) {
  EXPECT_LE(ulp_distance(DType::f64, gate_of("transform=softplus", {0}, 0, options)[0], -std::log(2.0)), 1);
  EXPECT_EQ(gate_of("transform=bounded/lb=-5", {0}, 0, options)[0], -2.5);
}

TEST(Oracle, RepeatedKeysMeetTheClosedForm) {  // k = q = e0, scale 1: p_t = (1 - beta) exp(g) p_{t-1} + beta v_t, o_t = p_t
  for (const double beta : {0.99966, 0.835, 1.0, 2.0}) {
    Probe probe("gdn/fwd/len=200,HK=1,HV=1,K=8,V=4/f32/scale=1/seed=0");
    const Tensors drawn = make_inputs(parse_id("gdn/fwd/len=200,HK=1,HV=1,K=8,V=4/f32/scale=1/seed=0"));
    probe["v"] = get(drawn, "v");
    for (std::int64_t t = 0; t < 200; ++t) {
      probe["q"].set({t, 0, 0}, 1);
      probe["k"].set({t, 0, 0}, 1);
      probe["beta"].set({t, 0}, beta);
      probe["g"].set({t, 0}, -3.07e-5);
    }
    const Bounds bounds = gdn_bounds(probe.problem, probe.inputs, kF64);
    const Answer a = probe.run();
    const double b = probe["beta"].at({0, 0}), alpha = std::exp(probe["g"].at({0, 0}));
    double p = 0, error = 0;  // error: of p, four roundings a step
    for (std::int64_t t = 0; t < 200; ++t) {
      const double v = probe["v"].at({t, 0, 1}), kept = (1 - b) * alpha * p;
      p = kept + b * v;
      error = std::abs((1 - b) * alpha) * error + 0x1p-53 * (6 * std::abs(kept) + 2 * std::abs(b * v) + std::abs(p));
      EXPECT_LE(std::abs(get(a.outputs, "o").at({t, 0, 1}) - p), error + bounds.o[static_cast<std::size_t>(t * 4 + 1)]) << t;
    }
  }
}

TEST(Oracle, EmptySequencesPassTheirStateThroughAndTheSuffixIsNeitherReadNorAnswered) {
  const Case c = parse_id("gdn/fwd/len=0+3+0+0,HK=1,HV=2,K=4,V=6,cap=8/bf16/gate=strong/h0=normal=1/seed=1");
  const Tensors inputs = make_inputs(c);  // NaN past the active end
  const Answer a = answer(c.problem, inputs);
  for (const std::int64_t n : {0, 2, 3})
    EXPECT_TRUE(bitwise_equal(rows(get(a.outputs, "final_state"), n, 1),
                              cast(rows(get(inputs, "initial_state"), n, 1), DType::f64)));
  for (const double x : to_f64(get(a.outputs, "final_state"))) EXPECT_TRUE(std::isfinite(x));
  for (std::int64_t t = 0; t < 8; ++t) EXPECT_EQ(std::isnan(get(a.outputs, "o").at({t, 1, 5})), t >= 3);
  for (const char* id : {"gdn/fwd/len=0+0,HK=1,HV=1,K=4,V=4/bf16/seed=1", "l2norm/fwd/len=0,HK=1,K=4/bf16/seed=1",
                         "gate/fwd/len=0,HV=2/bf16/seed=1"}) {
    const Case none = parse_id(id);
    EXPECT_NO_THROW(answer(none.problem, make_inputs(none), {.taps = true})) << id;
  }
}

TEST(Oracle, LaterTokensDoNotReachEarlierOutputs) {
  const Case c = parse_id("gdn/fwd/len=90,HK=1,HV=1,K=16,V=8/bf16/gate=mild/seed=4");
  Tensors inputs = make_inputs(c);
  const Answer before = answer(c.problem, inputs);
  for (std::int64_t t = 40; t < 90; ++t)
    inputs["v"].set({t, 0, 0}, 1e4), inputs["k"].set({t, 0, 1}, -1), inputs["g"].set({t, 0}, -50);
  const Answer after = answer(c.problem, inputs);
  EXPECT_TRUE(bitwise_equal(rows(get(before.outputs, "o"), 0, 40), rows(get(after.outputs, "o"), 0, 40)));
  EXPECT_FALSE(bitwise_equal(get(before.outputs, "o"), get(after.outputs, "o")));
}

TEST(Oracle, PackedSequencesAndHeadsAnswerAsIfAlone) {  // OLMo's head sizes, grouped value heads
  const Case packed = parse_id("gdn/fwd/len=5+9,HK=1,HV=3,K=96,V=192/bf16/gate=strong/h0=normal=1/seed=6");
  const Case alone = parse_id("gdn/fwd/len=9,HK=1,HV=3,K=96,V=192,ids=1/bf16/gate=strong/h0=normal=1/seed=6");
  for (const Precision precision : {Precision::f64, Precision::dd}) {
    const Answer a = answer(packed.problem, make_inputs(packed), {.precision = precision}),
                 b = answer(alone.problem, make_inputs(alone), {.precision = precision});
    EXPECT_TRUE(bitwise_equal(rows(get(a.outputs, "o"), 5, 9), get(b.outputs, "o")));
    EXPECT_TRUE(bitwise_equal(rows(get(a.outputs, "final_state"), 1, 1), get(b.outputs, "final_state")));
  }
}

TEST(Oracle, TheThreadCountAndTheSampledColumnsChangeNoBit) {
  const Case c = parse_id("gdn/fwd/len=30+11,HK=1,HV=2,K=20,V=150/f16/gate=mild/h0=normal=1/seed=2");
  const Tensors inputs = make_inputs(c);
  const int threads = omp_get_max_threads();
  for (const Precision precision : {Precision::f64, Precision::dd}) {
    omp_set_num_threads(1);
    const Answer one = answer(c.problem, inputs, {.precision = precision});
    omp_set_num_threads(5);
    const Answer five = answer(c.problem, inputs, {.precision = precision});
    const Answer sampled = answer(c.problem, inputs, {.precision = precision, .value_columns = 4, .taps = true});
    for (const auto& [name, tensor] : one.outputs) EXPECT_TRUE(bitwise_equal(tensor, get(five.outputs, name))) << name;
    for (std::int64_t v = 0; v < 150; ++v) {
      const bool wanted = v == 0 || v == 37 || v == 75 || v == 112;  // i * 150 / 4
      const double o = get(sampled.outputs, "o").at({33, 1, v}), full = get(one.outputs, "o").at({33, 1, v});
      EXPECT_TRUE(wanted ? o == full : std::isnan(o)) << v;
      EXPECT_EQ(std::isnan(get(sampled.outputs, "final_state").at({1, 1, v, 3})), !wanted);
      EXPECT_EQ(std::isnan(get(sampled.taps, "u").at({33, 1, v})), !wanted);
    }
  }
  omp_set_num_threads(threads);
}

TEST(Oracle, ReadsStridedTensorsByTheirStrides) {
  const Case c = parse_id("gdn/fwd/len=7,HK=1,HV=2,K=4,V=6/bf16/gate=mild/h0=normal=1/seed=3");
  Tensors inputs = make_inputs(c), strided = inputs;
  for (auto& [name, tensor] : strided) {
    if (name == "cu_seqlens") continue;
    Shape strides = tensor.strides();
    for (std::int64_t& s : strides) s *= 3;
    Tensor spread = Tensor::strided(tensor.dtype(), tensor.shape(), strides);
    const std::vector<double> values = to_f64(tensor);
    Shape index(tensor.shape().size());
    for (const double x : values) {
      spread.store(spread.offset_of(index), x);
      for (std::size_t d = index.size(); d-- > 0;) {
        if (++index[d] < tensor.shape()[d]) break;
        index[d] = 0;
      }
    }
    tensor = spread;
  }
  const Answer a = answer(c.problem, inputs), b = answer(c.problem, strided);
  for (const auto& [name, tensor] : a.outputs) EXPECT_TRUE(bitwise_equal(tensor, get(b.outputs, name))) << name;
}

TEST(Oracle, RefusesWhatItCannotAnswerAndSaysWhy) {
  const Case c = parse_id("gdn/fwd/len=5,HK=1,HV=2,K=4,V=6/bf16/h0=normal=1/seed=3");
  const auto message = [&](const Problem& problem, const Tensors& inputs) -> std::string {
    try {
      answer(problem, inputs);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  Tensors inputs = make_inputs(c);
  EXPECT_EQ(message(c.problem, inputs), "");
  Tensors bad = inputs;
  bad.erase("beta");
  EXPECT_NE(message(c.problem, bad).find("beta"), std::string::npos);
  bad = inputs;
  bad["v"] = Tensor(DType::bf16, {5, 2, 7});
  EXPECT_EQ(message(c.problem, bad), "v: expected shape [5, 2, 6], got [5, 2, 7]");
  bad = inputs;
  bad["g"] = Tensor(DType::i32, {5, 2});
  EXPECT_NE(message(c.problem, bad).find("g: expected a dtype like"), std::string::npos);
  bad = inputs;
  bad["cu_seqlens"].set({1}, 4);
  EXPECT_EQ(message(c.problem, bad), "cu_seqlens[1]: expected 5 (the lengths of the problem), got 4");
  Problem other = c.problem;
  other.h0 = {"none"};
  EXPECT_NE(message(other, inputs).find("initial_state"), std::string::npos);
  other = c.problem;
  other.raw_gate = Switch::on;
  EXPECT_NE(message(other, inputs).find("raw_gate"), std::string::npos);
  Tensors both = make_inputs(parse_id("gdn/fwd/len=5,HK=1,HV=2,K=4,V=6/bf16/h0=normal=1/raw_gate=on/seed=3"));
  EXPECT_EQ(message(other, both), "");
  both["g"] = inputs["g"];
  EXPECT_EQ(message(other, both), "g: expected no such tensor (raw_gate=on), got shape [5, 2]");
  both.erase("g");
  other.a_log = Switch::off;
  EXPECT_EQ(message(other, both), "A_log: expected no such tensor (a_log=off), got shape [2]");
  other = c.problem;
  other.op = "conv3d";
  EXPECT_NE(message(other, inputs).find("conv3d"), std::string::npos);
  EXPECT_THROW(parse_precision("f16"), Error);
  EXPECT_EQ(parse_precision("auto"), Precision::automatic);
  EXPECT_THROW(answer_chunkwise(c.problem, inputs, 0), Error);
}

TEST(Certify, AnOrdinaryCaseStandsInF64AndSaysHowFarItIsFromDd) {
  const Case c = parse_id("gdn/fwd/len=80,HK=1,HV=2,K=32,V=16/bf16/gate=mild/h0=normal=1/seed=5");
  const Tensors inputs = make_inputs(c);
  const Answer a = answer(c.problem, inputs, {.taps = true});
  EXPECT_EQ(a.used, Precision::f64);
  EXPECT_GT(a.disagreement, 0);
  EXPECT_LE(a.disagreement, kCertain);
  EXPECT_TRUE(
      bitwise_equal(get(a.outputs, "o"), get(answer(c.problem, inputs, {.precision = Precision::f64}).outputs, "o")));
  EXPECT_TRUE(
      bitwise_equal(get(a.taps, "S"), get(answer(c.problem, inputs, {.precision = Precision::dd, .taps = true}).taps, "S")));
}

TEST(Certify, ACancellingCaseIsAnsweredInDd) {  // S q = 2^40 - 2^40 + what is left of 2^-20: beyond 53 bits
  Probe probe("gdn/fwd/len=3,HK=1,HV=1,K=4,V=1/f32/scale=1/seed=0");
  const double v[] = {0x1p40, 1.0 / 3, -0x1p40};
  for (std::int64_t t = 0; t < 3; ++t) {  // three one-hot writes, read together after the last
    probe["k"].set({t, 0, t}, 1);
    probe["v"].set({t, 0, 0}, v[t]);
    probe["beta"].set({t, 0}, 1);
    probe["q"].set({2, 0, t}, 1);
  }
  const Answer a = probe.run();
  EXPECT_EQ(a.used, Precision::dd);
  EXPECT_GT(a.disagreement, kCertain);
  EXPECT_EQ(get(a.outputs, "o").at({2, 0, 0}), static_cast<double>(static_cast<float>(1.0 / 3)));
}

TEST(Certify, ScalesRowsByTheLargerOfTheirNormAndTheMedian) {
  Tensors a, b;
  a["o"] = b["o"] = from_f64(DType::f64, {3, 2}, std::vector<double>{3, 4, 30, 40, 0, 0});  // norms 5, 50, 0; median 5
  a["o"].set({2, 1}, 0.5);
  EXPECT_EQ(disagreement(a, b), 0.1);
  a["o"].set({1, 0}, 55);
  EXPECT_EQ(disagreement(a, b), 0.5);
  a["o"].set({0, 0}, kInf);
  EXPECT_EQ(disagreement(a, b), kInf);
  b["o"].set({0, 0}, std::nan(""));
  EXPECT_EQ(disagreement(a, b), 0.5);
}

}  // namespace
}  // namespace deltagauge::oracle
