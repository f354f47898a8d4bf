#include "oracle/certify.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deltagauge::oracle {
namespace {

double tensor_disagreement(std::span<const double> a, std::span<const double> b, std::size_t row) {
  std::vector<double> norms;  // of the dd rows
  for (std::size_t i = 0; i + row <= b.size(); i += row) {
    double square = 0;
    bool any = false;
    for (std::size_t j = i; j < i + row; ++j)
      if (std::isfinite(b[j])) square += b[j] * b[j], any = true;
    norms.push_back(any ? std::sqrt(square) : -1);
  }
  std::vector<double> sorted;
  std::ranges::copy_if(norms, std::back_inserter(sorted), [](double norm) { return norm >= 0; });
  if (!sorted.empty()) std::ranges::nth_element(sorted, sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2));
  const double median = sorted.empty() ? 0 : sorted[sorted.size() / 2];
  double worst = 0;
  for (std::size_t i = 0; i < row * norms.size(); ++i) {
    if (a[i] == b[i] || (!std::isfinite(a[i]) && !std::isfinite(b[i]))) continue;
    const double scale = std::max(norms[i / row], median), gap = std::abs(a[i] - b[i]) / scale;
    worst = std::max(worst, std::isnan(gap) ? std::numeric_limits<double>::infinity() : gap);
  }
  return worst;
}

}  // namespace

double disagreement(const Tensors& f64, const Tensors& dd) {
  double worst = 0;
  for (const auto& [name, tensor] : dd) {
    const auto row = static_cast<std::size_t>(tensor.shape().empty() ? 1 : tensor.shape().back());
    if (!tensor.empty()) worst = std::max(worst, tensor_disagreement(get(f64, name).as<double>(), tensor.as<double>(), row));
  }
  return worst;
}

}  // namespace deltagauge::oracle
