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

float transform_gate(const Problem& p, float y, const Rate& rate) {
  return p.transform == "bounded" ? bounded_gate(p.math, y, rate, static_cast<float>(p.lower_bound))
                                  : softplus_gate(p.math, y, rate);
}

double transform_gate_f64(const Problem& p, double y, double a) {
  const auto times = [a](double x) { return x == 0 ? x : a * x; };
  if (p.transform != "bounded") return -times(std::fmax(y, 0) + std::log1p(std::exp(-std::fabs(y))));
  const double z = times(y), t = std::exp(-std::fabs(z)), bound = static_cast<float>(p.lower_bound);
  return (z < 0 ? bound * t : bound) / (1 + t);
}

std::vector<Rate> rates_of(const Problem& p, const Tensors& inputs) {
  std::vector<Rate> rates(static_cast<std::size_t>(p.HV));
  if (p.a_log == Switch::off) return rates;
  const std::vector<double> A_log = to_f64(get(inputs, "A_log"));
  for (std::size_t h = 0; h < rates.size(); ++h) rates[h] = rate_of(static_cast<float>(A_log[h]));
  return rates;
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

template <class Real>
std::vector<double> log_decays(const Problem& p, const Tensors& inputs) {
  if (p.raw_gate == Switch::off) return to_f64(get(inputs, "g"));
  std::vector<double> g = to_f64(get(inputs, "raw_gate"));
  const std::vector<double> bias = to_f64(get(inputs, "dt_bias"));
  const std::vector<Rate> rates = rates_of(p, inputs);
  const Tensor* A_log = find(inputs, "A_log");
  for (std::int64_t i = 0; i < p.tokens() * p.HV; ++i) {
    const std::int64_t h = i % p.HV;
    const auto at = static_cast<std::size_t>(i), head = static_cast<std::size_t>(h);
    if constexpr (std::is_same_v<Real, float>)
      g[at] = transform_gate(p, static_cast<float>(g[at]) + static_cast<float>(bias[head]), rates[head]);
    else
      g[at] = transform_gate_f64(p, g[at] + bias[head], A_log ? std::exp(A_log->load(h)) : 1);
  }
  return g;
}
template std::vector<double> log_decays<float>(const Problem&, const Tensors&);
template std::vector<double> log_decays<double>(const Problem&, const Tensors&);

Tensors gate(const Problem& problem, const Tensors& inputs) {
  Tensors outputs = unwritten_outputs(problem);
  const std::vector<double> x = to_f64(get(inputs, "raw_gate")), bias = to_f64(get(inputs, "dt_bias"));
  const std::vector<Rate> rates = rates_of(problem, inputs);
  const std::int64_t width = problem.per == "channel" ? problem.K : 1, row = problem.HV * width;
  Tensor& g = outputs.find("g")->second;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < problem.tokens() * row; ++i) {
    const std::int64_t c = i % row;
    const float y =
        static_cast<float>(x[static_cast<std::size_t>(i)]) + static_cast<float>(bias[static_cast<std::size_t>(c)]);
    g.store(i, transform_gate(problem, y, rates[static_cast<std::size_t>(c / width)]));
  }
  return outputs;
}

}  // namespace deltagauge::reference
