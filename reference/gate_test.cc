#include "reference/gate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs.h"
#include "reference/l2norm.h"

namespace deltagauge::reference {
namespace {

double softplus(double y) { return std::fmax(y, 0) + std::log1p(std::exp(-std::fabs(y))); }

// One head, one row a value of raw, A_log and dt_bias as given.
Tensor run_gate(const std::string& axes, const std::vector<double>& raw, double A_log, double dt_bias) {
  Case c = parse_id("gate/fwd/len=" + std::to_string(raw.size()) + ",HV=1/f32/" + axes);
  Tensors inputs = make_inputs(c);
  for (std::size_t i = 0; i < raw.size(); ++i) inputs["raw_gate"].store(static_cast<std::int64_t>(i), raw[i]);
  if (inputs.contains("A_log")) inputs["A_log"].store(0, A_log);
  inputs["dt_bias"].store(0, dt_bias);
  return get(gate(c.problem, inputs), "g");
}

TEST(Gate, both_transforms_stay_within_the_roundings_of_their_five_steps) {
  const std::vector<double> raw{-1e4, -88, -40, -20, -16.6, -1, 0, 0.5, 1, 19.9, 20, 20.1, 87, 88, 89, 100, 1e4};
  for (double A_log : {-5.0, 0.0, std::log(16.0)})
    for (const char* math : {"precise", "fast"}) {
      const Tensor soft = run_gate(std::string("transform=softplus/") + math, raw, A_log, 0);
      const Tensor bounded = run_gate(std::string("transform=bounded/") + math, raw, A_log, 0);
      for (std::size_t i = 0; i < raw.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const double x = static_cast<float>(raw[i]), a = std::exp(static_cast<float>(A_log));
        const double s = -a * softplus(x), b = -5 / (1 + std::exp(-a * x));
        // At most 8 roundings a transform, of which those of an exponential's argument count by the argument's size.
        const double u = 0x1p-24, tail = std::exp(-std::fabs(x)) * std::fabs(x), z = std::fmin(std::fabs(a * x), 104);
        EXPECT_LE(std::fabs(soft.load(at) - s), 8 * u * (std::fabs(s) + a * tail) + 0x1p-149) << math << " x=" << x;
        EXPECT_LE(std::fabs(bounded.load(at) - b), 8 * u * std::fabs(b) * (1 + z) + 5 * 0x1p-149) << math << " x=" << x;
        EXPECT_GE(bounded.load(at), -5);
        EXPECT_LE(bounded.load(at), 0);
      }
      if (A_log >= 0) {
        EXPECT_EQ(bounded.load(0), 0) << math;
      }
      EXPECT_EQ(bounded.load(static_cast<std::int64_t>(raw.size()) - 1), -5) << math;
    }
}

TEST(Gate, an_infinite_rate_saturates_without_nan) {
  const Tensor bounded = run_gate("transform=bounded", {-10, 0, 10}, 100, 0);  // exp(100) is infinite in f32
  EXPECT_EQ(bounded.load(0), 0);
  EXPECT_EQ(bounded.load(1), -2.5);
  EXPECT_EQ(bounded.load(2), -5);
  EXPECT_EQ(run_gate("transform=softplus", {-1e4}, 100, 0).load(0), 0);
}

TEST(Gate, a_rate_beyond_f32_overflows_only_where_the_gate_does) {
  const std::vector<double> raw{-10, -80, 10};
  const Tensor soft = run_gate("transform=softplus", raw, 89, 0);  // exp(89) is infinite in f32
  for (std::int64_t i = 0; i < 2; ++i) {
    const double right = -std::exp(89) * softplus(raw[static_cast<std::size_t>(i)]);
    // Roundings of exp's two arguments by their sizes (10 or 80, twice 44.5), five results.
    EXPECT_LE(std::fabs(soft.load(i) - right), (80 + 89 + 5 * 2) * 0x1p-24 * std::fabs(right));
  }
  EXPECT_EQ(soft.load(2), -std::numeric_limits<double>::infinity());
  const Tensor bounded = run_gate("transform=bounded", {1e-39, -1e-39}, 89, 0);
  const double z = std::exp(89) * static_cast<double>(1e-39f);
  EXPECT_LE(std::fabs(bounded.load(0) + 5 / (1 + std::exp(-z))), 5 * 100 * 0x1p-24);
  EXPECT_LE(std::fabs(bounded.load(1) + 5 / (1 + std::exp(z))), 5 * 100 * 0x1p-24);
}

TEST(Gate, a_missing_A_log_has_the_bits_of_A_log_zero) {
  const std::vector<double> raw{-3, -0.25, 0, 0.3, 7};
  for (const char* transform : {"transform=softplus", "transform=bounded"})
    EXPECT_TRUE(
        bitwise_equal(run_gate(std::string(transform) + "/a_log=off", raw, 0, 0.125), run_gate(transform, raw, 0, 0.125)));
}

TEST(Gate, per_channel_bias_is_read_by_channel) {
  const Case c = parse_id("gate/fwd/len=3,HV=2,K=4/f32/per=channel");
  Tensors inputs = make_inputs(c);
  for (std::int64_t i = 0; i < 24; ++i) inputs["raw_gate"].store(i, 0);
  for (std::int64_t i = 0; i < 2; ++i) inputs["A_log"].store(i, 0);
  for (std::int64_t i = 0; i < 8; ++i) inputs["dt_bias"].store(i, static_cast<double>(i));
  const Tensor g = get(gate(c.problem, inputs), "g");
  for (std::int64_t i = 0; i < 24; ++i)
    EXPECT_LE(std::fabs(g.load(i) + softplus(static_cast<double>(i % 8))), 4 * 0x1p-24 * 8);
}

TEST(L2norm, a_sum_of_squares_beyond_f32_still_gives_unit_rows) {
  Case c = parse_id("l2norm/fwd/len=2,HK=1,K=128/f32");
  Tensors inputs = make_inputs(c);
  Tensors scaled = inputs;
  for (std::int64_t i = 0; i < 2 * 128; ++i) scaled["x"].store(i, std::ldexp(inputs["x"].load(i), 120));
  const Tensor y = get(l2norm(c.problem, scaled), "y");
  constexpr double kGamma = (128 + 4) * 0x1p-24;
  for (std::int64_t row = 0; row < 2; ++row) {
    double sum = 0;
    for (std::int64_t i = row * 128; i < (row + 1) * 128; ++i) sum += inputs["x"].load(i) * inputs["x"].load(i);
    for (std::int64_t i = row * 128; i < (row + 1) * 128; ++i) {
      const double right = inputs["x"].load(i) / std::sqrt(sum);
      EXPECT_LE(std::fabs(y.load(i) - right), kGamma * std::fabs(right));
    }
  }
}

TEST(L2norm, eps_is_added_to_the_sum_and_zero_rows_stay_zero) {
  Case c = parse_id("l2norm/fwd/len=3,HK=1,K=128/f32");
  Tensors inputs = make_inputs(c);
  for (std::int64_t i = 0; i < 3 * 128; ++i) inputs["x"].store(i, i < 128 ? 1e-3 : i < 256 ? 0 : 2);
  const Tensor y = get(l2norm(c.problem, inputs), "y");
  constexpr double kEps = 1e-6, kGamma = (128 + 4) * 0x1p-24;
  const double x = static_cast<float>(1e-3), small = x / std::sqrt(128 * x * x + kEps), unit = 1 / std::sqrt(128);
  EXPECT_LE(std::fabs(y.load(0) - small), kGamma * small);  // 0.088045; with the eps on the mean: 0.0625
  EXPECT_EQ(y.load(128), 0);
  EXPECT_LE(std::fabs(y.load(256) - unit), kGamma * unit);
}

}  // namespace
}  // namespace deltagauge::reference
