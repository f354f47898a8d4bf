#include "core/inputs.h"

#include <gtest/gtest.h>

#include <cmath>

#include "core/error.h"
#include "core/portable_math.h"

namespace deltagauge {
namespace {

Tensors draw(const std::string& id) { return make_inputs(parse_id(id)); }

TEST(PortableMath, IsWithinAFewUlpOfTheLibrary) {
  for (int i = -7000; i <= 7000; ++i) {
    const double x = i / 10.0;
    EXPECT_LE(ulp_distance(DType::f64, portable::exp(x), std::exp(x)), 8) << x;
    EXPECT_LE(std::fabs(portable::softplus(x) - (std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))))),
              0x1p-50 * portable::softplus(x))
        << x;
    const double y = std::exp(x);
    EXPECT_LE(std::fabs(portable::log(y) - std::log(y)), 0x1p-50 * std::fmax(1, std::fabs(std::log(y)))) << y;
    const double u = (i + 7000) / 14001.0;
    EXPECT_LE(std::fabs(portable::cos_turn(u) - std::cos(2 * M_PI * u)), 0x1p-50) << u;
  }
}

TEST(Inputs, KeepTheirValuesWhenACaseIsCut) {
  const Tensors full = draw("gdn/fwd/len=7+9+4,HK=2,HV=4,K=64,V=32/f32/gate=strong/h0=normal=1/seed=5");
  const Tensors fewer_heads = draw("gdn/fwd/len=7+9+4,HK=1,HV=2,K=64,V=32/f32/gate=strong/h0=normal=1/seed=5");
  const Tensors shorter = draw("gdn/fwd/len=7+3,HK=2,HV=4,K=64,V=16/f32/gate=strong/h0=normal=1/seed=5");
  const Tensors middle = draw("gdn/fwd/len=9,HK=2,HV=4,K=64,V=32,ids=1/f32/gate=strong/h0=normal=1/seed=5");
  for (std::int64_t t = 0; t < 10; ++t)
    for (std::int64_t d = 0; d < 16; ++d) {
      EXPECT_EQ(get(full, "k").at({t, 0, d}), get(fewer_heads, "k").at({t, 0, d}));
      EXPECT_EQ(get(full, "v").at({t, 1, d}), get(shorter, "v").at({t, 1, d}));
    }
  EXPECT_TRUE(bitwise_equal(rows(get(full, "q"), 7, 9), get(middle, "q")));
  EXPECT_TRUE(bitwise_equal(rows(get(full, "g"), 7, 9), get(middle, "g")));
  EXPECT_TRUE(bitwise_equal(rows(get(full, "initial_state"), 1, 1), get(middle, "initial_state")));
}

TEST(Inputs, DifferByTensorAndSeed) {
  const Tensors a = draw("gdn/fwd/len=4/f32/seed=1"), b = draw("gdn/fwd/len=4/f32/seed=2");
  EXPECT_FALSE(bitwise_equal(get(a, "q"), get(b, "q")));
  EXPECT_FALSE(bitwise_equal(get(a, "q"), get(a, "k")));
}

TEST(Inputs, HaveTheMomentsTheyClaim) {
  const std::int64_t n = 4000;
  const Tensors in = draw("gdn/fwd/len=4000,HK=1,HV=4,K=64,V=64/f32/gate=strong/v=normal=3/seed=1");
  const std::vector<double> v = to_f64(get(in, "v"));
  double sum = 0, square = 0;
  for (const double x : v) sum += x, square += x * x;
  const double count = static_cast<double>(v.size());
  EXPECT_LT(std::fabs(sum / count), 5 * 3 / std::sqrt(count));  // five standard errors
  EXPECT_LT(std::fabs(square / count / 9 - 1), 5 * std::sqrt(2 / count));
  double g = 0;
  for (std::int64_t t = 0; t < n; ++t) g += get(in, "g").at({t, 0});
  EXPECT_LT(std::fabs(g / static_cast<double>(n) + 0.806),
            5 * 0.6 / std::sqrt(static_cast<double>(n)));  // mean of logsigmoid(N)
}

TEST(Inputs, GiveKeysTheNamedGeometry) {
  const auto dot = [](const Tensor& k, std::int64_t s, std::int64_t t) {
    double sum = 0;
    for (std::int64_t d = 0; d < k.dim(2); ++d) sum += k.at({s, 0, d}) * k.at({t, 0, d});
    return sum;
  };
  const auto keys = [](const char* regime) {
    return get(draw(std::string("gdn/fwd/len=400,K=128/f32/keys=") + regime + "/gate=none"), "k");
  };
  const double u = 128 * unit_roundoff(DType::f32);
  EXPECT_LT(std::fabs(dot(keys("iid"), 3, 3) - 1), u);
  EXPECT_LT(std::fabs(dot(keys("repeated"), 3, 8) - 1), u);
  EXPECT_LT(std::fabs(dot(keys("alternating"), 3, 8) + 1), u);
  EXPECT_LT(std::fabs(dot(keys("two-interleaved"), 3, 5) - 1), u);
  const Tensor rho = keys("rho=0.9");
  double mean = 0;
  for (std::int64_t t = 1; t < 400; ++t) mean += dot(rho, t - 1, t) / 399;
  EXPECT_LT(std::fabs(mean - 0.9), 5 * 0.1 / std::sqrt(399.0));
}

// q, k, v of a packed row are those of gdn with normalisation inside; raw gates and strengths give its regimes.
TEST(Inputs, PackWhatGdnHasApart) {
  const std::string axes = "HK=2,HV=4,K=8,V=3/f32/h0=normal=1/slots=4/seed=9";
  const Case decode = parse_id("gdn_decode/fwd/len=1x3," + axes), gdn = parse_id("gdn/fwd/len=1x3," + axes + "/l2norm=on");
  const Tensors packed = make_inputs(decode), apart = make_inputs(gdn);
  std::int64_t first = 0;
  for (const char* name : {"q", "k", "v"}) {
    const Tensor& want = get(apart, name);
    for (std::int64_t n = 0; n < 3; ++n)
      for (std::int64_t h = 0; h < want.dim(1); ++h)
        for (std::int64_t d = 0; d < want.dim(2); ++d)
          EXPECT_EQ(get(packed, "packed_qkv").at({n, first + h * want.dim(2) + d}), want.at({n, h, d})) << name;
    first += want.dim(1) * want.dim(2);
  }
  EXPECT_TRUE(bitwise_equal(rows(get(packed, "initial_state"), 1, 3), rows(get(apart, "initial_state"), 1, 3)));
  const Tensors constant =
      make_inputs(parse_id("gdn_decode/fwd/len=1x3,HV=2/h0=zero/slots=4/gate=constant=-2/beta=const=0.25"));
  for (const double x : to_f64(get(constant, "raw_gate"))) EXPECT_LE(std::fabs(std::log1p(std::exp(x)) - 2), 0x1p-21);
  for (const double x : to_f64(get(constant, "raw_beta"))) EXPECT_LE(std::fabs(1 / (1 + std::exp(-x)) - 0.25), 0x1p-24);
}

// Whatever the transform, mild and strong gates are about as strong, and constant ones what they say.
TEST(Inputs, GiveRawGatesTheRegimesOfGates) {
  const auto decays = [](const std::string& axes) {
    const Case c = parse_id("gdn/fwd/len=400,HV=2/f32/raw_gate=on/" + axes);
    return to_f64(log_decays(c.problem, make_inputs(c)));
  };
  const auto mean = [](const std::vector<double>& x) {
    double sum = 0;
    for (const double value : x) sum += value;
    return sum / static_cast<double>(x.size());
  };
  const double error = 5 / std::sqrt(800.0);  // five standard errors of N(0, 1), whose slope is at most 1 or |lb| / 4
  EXPECT_LT(std::fabs(mean(decays("gate=strong")) + 0.806), error);
  EXPECT_LT(std::fabs(mean(decays("gate=mild")) + 0.806 / 16), error / 16);
  EXPECT_LT(std::fabs(mean(decays("gate=strong/transform=bounded/lb=-4")) + 2), error);
  EXPECT_LT(std::fabs(mean(decays("gate=mild/transform=bounded")) + 0.054), error / 16);  // 5 E sigmoid(N - 5)
  for (const char* axes : {"gate=constant=-2", "gate=constant=-2/transform=bounded", "gate=constant=-2/a_log=off"})
    for (const double g : decays(axes)) EXPECT_LE(std::fabs(g + 2), 0x1p-20) << axes;
  for (const char* axes : {"gate=none", "gate=constant=0", "gate=none/transform=bounded", "gate=none/transform=bounded/lb=0",
                           "gate=constant=0/transform=bounded"})
    for (const double g : decays(axes)) EXPECT_EQ(g, 0) << axes;
  Case tiny = parse_id("gdn/fwd/len=4,HV=2/f32/raw_gate=on");
  tiny.problem.gate = {"constant", -0x1p-66, true};
  for (const double g : to_f64(log_decays(tiny.problem, make_inputs(tiny))))
    EXPECT_LE(std::fabs(g / -0x1p-66 - 1), 64 * unit_roundoff(DType::f32)) << "a raw gate of -66 log 2, rounded";
  for (const double g : decays("gate=constant=-5/transform=bounded")) EXPECT_EQ(g, -5);
  for (const double g : decays("gate=edge/transform=bounded/A_log[*]=1000")) EXPECT_TRUE(g >= -5 && g <= 0) << g;
  for (const double g : decays("gate=edge/A_log[*]=1000")) EXPECT_TRUE(g <= 0) << g;
  const Case given = parse_id("gdn/fwd/len=3,HV=2,cap=4/f32/gate=strong");
  const Tensors inputs = make_inputs(given);
  for (std::int64_t t = 0; t < 3; ++t) EXPECT_EQ(log_decays(given.problem, inputs).at({t, 1}), get(inputs, "g").at({t, 1}));
  EXPECT_TRUE(std::isnan(log_decays(given.problem, inputs).at({3, 0})));
  for (const double x : to_f64(get(draw("gdn_decode/fwd/len=1,HV=2/h0=zero/slots=2/gate=constant=0"), "raw_gate")))
    EXPECT_EQ(x, -INFINITY);
}

TEST(Inputs, PoisonRowsPastTheActiveEnd) {
  const Tensors in = draw("gdn/fwd/len=3,cap=5/bf16/g[*,*]=-1");
  EXPECT_FALSE(std::isnan(get(in, "q").at({2, 0, 0})));
  for (const char* name : {"q", "k", "v"}) EXPECT_TRUE(std::isnan(get(in, name).at({3, 0, 0}))) << name;
  EXPECT_EQ(get(in, "g").at({2, 0}), -1);
  EXPECT_TRUE(std::isnan(get(in, "g").at({4, 0})));
}

TEST(Inputs, ApplyOverridesAfterDrawing) {
  const Tensors in = draw("gdn/fwd/len=8,HV=2/f32/g[2:4,1]=-89/initial_state[0,0,5,3]=1/h0=zero");
  EXPECT_EQ(get(in, "g").at({2, 1}), -89);
  EXPECT_EQ(get(in, "g").at({3, 1}), -89);
  EXPECT_NE(get(in, "g").at({4, 1}), -89);
  EXPECT_NE(get(in, "g").at({2, 0}), -89);
  EXPECT_EQ(get(in, "initial_state").at({0, 0, 5, 3}), 1);
  EXPECT_THROW(draw("gdn/fwd/len=8/g[8,0]=1"), Error);
  EXPECT_THROW(draw("gdn/fwd/len=8/nosuch[0]=1"), Error);
  EXPECT_THROW(draw("gdn/fwd/len=8/g[0]=1"), Error);
}

TEST(Inputs, RefuseARecurrenceThatGrowsByItself) {
  EXPECT_THROW(draw("gdn/fwd/len=64/bf16/gate=none/beta=const=2/kscale=1.2"), Error);
  EXPECT_NO_THROW(draw("gdn/fwd/len=64/bf16/gate=none/beta=const=2/kscale=1.2/diverge=on"));
  EXPECT_NO_THROW(draw("gdn/fwd/len=64/bf16/gate=constant=-1/beta=const=2/kscale=1.2"));  // decay outweighs it
  EXPECT_NO_THROW(draw("gdn/fwd/len=64/bf16/gate=none/beta=wide"));
  EXPECT_THROW(draw("gdn/fwd/len=64/bf16/g[3,0]=0.5"), Error);
  EXPECT_THROW(draw("gdn/fwd/len=64/bf16/gate=constant=-9/beta[3,0]=-0.5"), Error);
  EXPECT_NO_THROW(draw("gdn/fwd/len=64/bf16/gate=constant=-9/beta[3,0]=-0.5/diverge=on"));
  EXPECT_NO_THROW(draw("gdn/fwd/len=64/bf16/beta[3,0]=-0"));
  EXPECT_THROW(draw("gdn/fwd/len=64/bf16/gate=none/raw_gate=on/beta=const=2/kscale=1.2"), Error);
  EXPECT_NO_THROW(draw("gdn/fwd/len=64/bf16/gate=constant=-1/raw_gate=on/beta=const=2/kscale=1.2"));
}

TEST(Inputs, RefuseValuesWithoutAnAnswer) {
  for (const char* part : {"q[0,0,0]=nan", "k[*,0,0]=inf", "v[7,0,0]=-inf", "beta[0,0]=nan", "g[0,0]=nan", "g[0,0]=inf",
                           "g[0,0]=nan/diverge=on", "v=normal=1e300", "v=normal=inf", "kscale=1e300", "h0=normal=1e39"})
    EXPECT_THROW(draw(std::string("gdn/fwd/len=8/f32/") + part), Refused) << part;
  EXPECT_THROW(draw("gdn/fwd/len=8/f16/v[0,0,0]=65520"), Refused) << "infinite once rounded";
  EXPECT_THROW(draw("l2norm/fwd/len=4/x[0,0,0]=inf"), Refused);
  EXPECT_THROW(draw("gate/fwd/len=4/A_log[0]=inf"), Refused);
  EXPECT_THROW(draw("gate/fwd/len=4/raw_gate[0,0]=nan"), Refused);
  EXPECT_NO_THROW(draw("gate/fwd/len=4/raw_gate[0,0]=-inf/raw_gate[1,0]=inf"));
  EXPECT_NO_THROW(draw("gdn/fwd/len=4/raw_gate=on/raw_gate[0,0]=-inf/raw_gate[1,0]=inf"));
  for (const char* part : {"raw_gate[0,0]=nan", "A_log[0]=inf", "dt_bias[0]=nan"})
    EXPECT_THROW(draw(std::string("gdn/fwd/len=4/raw_gate=on/") + part), Refused) << part;
  EXPECT_NO_THROW(draw("gdn/fwd/len=8,cap=10/f32/g[0,0]=-inf/q[9,0,0]=nan"));
}

TEST(Inputs, NameWhatIsTooLargeForTheMachine) {
  try {
    draw("gdn/fwd/len=1099511627776,HV=1048576,V=65536/layout=dense");
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("v [1099511627776, 1048576, 65536] alone takes"), std::string::npos) << e.what();
  }
  EXPECT_THROW(draw("gdn/fwd/len=0x16777216,HV=64,K=256,V=256"), Error);
}

TEST(Inputs, LatticeValuesAreSmallIntegers) {
  const Tensors in = draw("gdn/fwd/len=300,HK=1,HV=2,K=64,V=32/bf16/data=lattice/scale=1/gate=edge/h0=normal=1");
  for (const char* name : {"q", "k", "v", "beta", "initial_state"})
    for (const double x : to_f64(get(in, name))) {
      EXPECT_EQ(x, std::nearbyint(x)) << name;
      EXPECT_LE(std::fabs(x), 8) << name;
    }
  for (const double g : to_f64(get(in, "g"))) EXPECT_TRUE(g == 0 || g < -1e37) << g;
  const Case raw = parse_id("gdn/fwd/len=300,HV=2/bf16/raw_gate=on/data=lattice/scale=1/gate=edge");
  for (const double g : to_f64(log_decays(raw.problem, make_inputs(raw)))) EXPECT_TRUE(g == 0 || g < -1e37) << g;
}

TEST(Regimes, EveryNamedOneIsAccepted) {
  for (const RegimeInfo& r : regimes()) {
    Case c;
    std::string text(r.name);
    const auto eq = text.find('=');
    if (eq != std::string::npos) text = text.substr(0, eq) + (r.axis == "gate" ? "=-0.5" : "=0.5");
    EXPECT_NO_THROW(set_axis(c, r.axis, text)) << r.axis << " " << text;
  }
}

}  // namespace
}  // namespace deltagauge
