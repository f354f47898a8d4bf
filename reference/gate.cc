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

// a may be infinite: a * 0 is still 0.
float softplus_gate(MathMode math, float y, float a) {
  const float softplus = std::fmax(y, 0.0f) + log1p_f32(math, decay(math, -std::fabs(y)));
  return softplus == 0 ? -0.0f : -a * softplus;
}
float bounded_gate(MathMode math, float y, float a, float lower_bound) {
  const float z = y == 0 ? 0.0f : a * y, t = decay(math, -std::fabs(z));
  return (z < 0 ? lower_bound * t : lower_bound) / (1 + t);
}

}  // namespace

Tensors gate(const Problem& problem, const Tensors& inputs) {
  Tensors outputs = unwritten_outputs(problem);
  const std::vector<double> x = to_f64(get(inputs, "raw_gate")), bias = to_f64(get(inputs, "dt_bias"));
  std::vector<float> a(static_cast<std::size_t>(problem.HV), 1.0f);
  if (problem.a_log == Switch::on) {
    const std::vector<double> A_log = to_f64(get(inputs, "A_log"));
    for (std::size_t h = 0; h < a.size(); ++h) a[h] = decay(MathMode::precise, static_cast<float>(A_log[h]));
  }
  const std::int64_t width = problem.per == "channel" ? problem.K : 1, row = problem.HV * width;
  Tensor& g = outputs.find("g")->second;
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < problem.tokens() * row; ++i) {
    const std::int64_t c = i % row;
    const float y =
        static_cast<float>(x[static_cast<std::size_t>(i)]) + static_cast<float>(bias[static_cast<std::size_t>(c)]);
    const float a_h = a[static_cast<std::size_t>(c / width)];
    g.store(i, problem.transform == "bounded" ? bounded_gate(problem.math, y, a_h, static_cast<float>(problem.lower_bound))
                                              : softplus_gate(problem.math, y, a_h));
  }
  return outputs;
}

}  // namespace deltagauge::reference
