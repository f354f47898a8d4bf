// l2norm: y = x / sqrt(sum x^2 + 1e-6) over rows x [K]; the eps is the decimal 1e-6 to the precision at hand, on the sum.
#pragma once
#include <cmath>

#include "oracle/call.h"
#include "oracle/real.h"

namespace deltagauge::oracle {

template <class Real>
void normalise(const double* x, std::int64_t n, Real* y) {
  using std::sqrt;
  Dot<Real> square;
  for (std::int64_t i = 0; i < n; ++i) square.add(Real(x[i]), Real(x[i]));
  const Real r = Real(1.0) / sqrt(square.sum() + Real(1.0) / Real(1e6));
  for (std::int64_t i = 0; i < n; ++i) y[i] = Real(x[i]) * r;
}

// x [T, HK, K] -> answer.outputs y [T, HK, K].
template <class Real>
void l2norm(const Call& call, Answer& answer) {
  const Tensor& x = get(call.inputs, "x");
  Tensor& y = answer.outputs.find("y")->second;
  const std::int64_t T = call.problem.tokens(), H = call.problem.HK, K = call.problem.K;
#pragma omp parallel if (T * H * K > kWorthThreads)
  {
    std::vector<double> row(static_cast<std::size_t>(K));
    std::vector<Real> unit(row.size());
#pragma omp for
    for (std::int64_t i = 0; i < T * H; ++i) {
      read_row(x, i / H * x.strides()[0] + i % H * x.strides()[1], x.strides()[2], K, row.data());
      vectorised<Real>([&] { normalise(row.data(), K, unit.data()); });
      for (std::int64_t j = 0; j < K; ++j)
        y.as<double>()[static_cast<std::size_t>(i * K + j)] = static_cast<double>(unit[j]);
    }
  }
}

extern template void l2norm<double>(const Call&, Answer&);  // l2norm.cc
extern template void l2norm<DoubleDouble>(const Call&, Answer&);

}  // namespace deltagauge::oracle
