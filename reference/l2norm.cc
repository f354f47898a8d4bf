#include "reference/l2norm.h"

#include <vector>

#include "reference/gdn_data.h"

namespace deltagauge::reference {

Tensors l2norm(const Problem& problem, const Tensors& inputs) {
  Tensors outputs = unwritten_outputs(problem);
  const std::vector<double> x = to_f64(get(inputs, "x"));
  Tensor& y = outputs.find("y")->second;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < problem.tokens() * problem.HK; ++row) {
    std::vector<float> values(x.begin() + row * problem.K, x.begin() + (row + 1) * problem.K);
    normalise_row(problem.K, values.data(), problem.io);
    for (std::int64_t c = 0; c < problem.K; ++c) y.store(row * problem.K + c, values[static_cast<std::size_t>(c)]);
  }
  return outputs;
}

}  // namespace deltagauge::reference
