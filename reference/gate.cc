#include "reference/gate.h"

#include <cmath>
#include <vector>

#include "reference/gdn_data.h"

namespace deltagauge::reference {
namespace {

float log1p_f32(MathMode math, float t) {  // 0 <= t <= 1
  if (math == MathMode::precise) return static_cast<float>(std::log1p(static_cast<double>(t)));
  const float s = t / (2 + t), z = s * s;
  float sum = 1.0f / 15;
  for (int n = 13; n >= 3; n -= 2) sum = std::fma(sum, z, 1 / static_cast<float>(n));
  return 2 * std::fma(sum * z, s, s);
}

float times(const Rate& rate, float y) {
  if (y == 0) return y;
  if (!std::isinf(rate.a)) return rate.a * y;
  const float root = decay(MathMode::precise, 0.5f * rate.A_log);
  return root * y * root;
}

float bounded_gate(MathMode math, float y, const Rate& rate, float lower_bound) {
  const float z = times(rate, y), t = decay(math, -std::fabs(z));
  return (z < 0 ? lower_bound * t : lower_bound) / (1 + t);
}

}  // namespace

Rate rate_of(float A_log) { return {decay(MathMode::precise, A_log), A_log}; }

float softplus_gate(MathMode math, float y, const Rate& rate) {
  const float softplus = std::fmax(y, 0.0f) + log1p_f32(math, decay(math, -std::fabs(y)));
  return -times(rate, softplus);
}

float sigmoid(MathMode math, float z) {
  const float t = decay(math, -std::fabs(z));
  return (z < 0 ? t : 1) / (1 + t);
}

Tensors gate(const Problem& problem, const Tensors& inputs) {
  Tensors outputs = unwritten_outputs(problem);
  const std::vector<double> x = to_f64(get(inputs, "raw_gate")), bias = to_f64(get(inputs, "dt_bias"));
  std::vector<Rate> rates(static_cast<std::size_t>(problem.HV));
  if (problem.a_log == Switch::on) {
    const std::vector<double> A_log = to_f64(get(inputs, "A_log"));
    for (std::size_t h = 0; h < rates.size(); ++h) rates[h] = rate_of(static_cast<float>(A_log[h]));
  }
  const std::int64_t width = problem.per == "channel" ? problem.K : 1, row = problem.HV * width;
  Tensor& g = outputs.find("g")->second;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < problem.tokens() * row; ++i) {
    const std::int64_t c = i % row;
    const float y =
        static_cast<float>(x[static_cast<std::size_t>(i)]) + static_cast<float>(bias[static_cast<std::size_t>(c)]);
    const Rate& rate = rates[static_cast<std::size_t>(c / width)];
    g.store(i, problem.transform == "bounded" ? bounded_gate(problem.math, y, rate, static_cast<float>(problem.lower_bound))
                                              : softplus_gate(problem.math, y, rate));
  }
  return outputs;
}

}  // namespace deltagauge::reference
