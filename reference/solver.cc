#include "reference/solver.h"

#include <Eigen/Core>
#include <algorithm>
#include <cmath>

#include "core/half.h"

namespace deltagauge::reference {
namespace {

template <class Real>
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using Index = Eigen::Index;

template <class Real>
Matrix<Real> forward_substitution(const Matrix<Real>& A) {
  const Index n = A.rows();
  Matrix<Real> X = Matrix<Real>::Identity(n, n);
  for (Index i = 1; i < n; ++i)
    for (Index j = 0; j < i; ++j) X.row(i).head(j + 1) -= A(i, j) * X.row(j).head(j + 1);
  return X;
}

// a b with what a method's multiply-adds and stores round to.
Matrix<float> product_f32(const Matrix<float>& a, const Matrix<float>& b) { return a * b; }
Matrix<float> tf32(const Matrix<float>& x) {
  return x.unaryExpr([](float e) { return round_tf32(e); });
}
Matrix<float> product_tf32(const Matrix<float>& a, const Matrix<float>& b) { return tf32(a) * tf32(b); }
Matrix<float> product_bf16(const Matrix<float>& a, const Matrix<float>& b) {
  return Matrix<float>(a * b).unaryExpr([](float x) { return round_bf16(x); });
}
Matrix<float> product_f16(const Matrix<float>& a, const Matrix<float>& b) {
  Matrix<float> c = Matrix<float>::Zero(a.rows(), b.cols());
  for (Index i = 0; i < a.rows(); ++i)
    for (Index t = 0; t < a.cols(); ++t)
      for (Index j = 0; j < b.cols(); ++j)  // one fused multiply-add in f16: a b is exact in f32, the sum in f64
        c(i, j) = static_cast<float>(to_f64(to_f16(static_cast<double>(a(i, t)) * b(t, j) + c(i, j))));
  return c;
}
using Product = Matrix<float> (*)(const Matrix<float>&, const Matrix<float>&);

Matrix<float> doubling(const Matrix<float>& A, Product product) {
  const Index n = A.rows();
  const Matrix<float> eye = Matrix<float>::Identity(n, n);
  Matrix<float> power = product(A, eye);  // A as the method stores it
  Matrix<float> X = eye - power;
  for (Index reach = 2; reach < n; reach *= 2) {
    power = product(power, power);
    X = product(X, eye + power);
  }
  return X;
}

Matrix<float> by_blocks(const Matrix<float>& A, Index block, Matrix<float> (*diagonal)(const Matrix<float>&),
                        Product product) {
  const Index n = A.rows();
  Matrix<float> X = Matrix<float>::Zero(n, n);
  for (Index I = 0; I < n; I += block) {
    const Index rows = std::min(block, n - I);
    const Matrix<float> X_II = diagonal(A.block(I, I, rows, rows));
    X.block(I, I, rows, rows) = X_II;
    for (Index J = 0; J < I; J += block) {
      const Matrix<float> sum = product(A.block(I, J, rows, I - J), X.block(J, J, I - J, block));
      X.block(I, J, rows, block) = -product(X_II, sum);
    }
  }
  return X;
}

Matrix<float> block16(const Matrix<float>& A) { return by_blocks(A, 16, forward_substitution<float>, product_f32); }

Matrix<float> invert_f32(Solver solver, const Matrix<float>& A) {
  switch (solver) {
    case Solver::block16:
      return block16(A);
    case Solver::halves32_tf32:
      return by_blocks(
          A, 32, [](const Matrix<float>& half) { return tf32(block16(half)); }, product_tf32);
    case Solver::doubling16_f16:
      return by_blocks(
          A, 16, [](const Matrix<float>& block) { return doubling(block, product_f16); }, product_f16);
    case Solver::doubling16_bf16:
      return by_blocks(
          A, 16, [](const Matrix<float>& block) { return doubling(block, product_bf16); }, product_bf16);
    case Solver::doubling_f32:
      return doubling(A, product_f32);
    case Solver::fs64:
    case Solver::fs32:
      break;
  }
  return forward_substitution(A);
}

}  // namespace

std::vector<double> invert(Solver solver, std::int64_t n, std::span<const double> A) {
  const Matrix<double> lower =
      Eigen::Map<const Matrix<double>>(A.data(), n, n).template triangularView<Eigen::StrictlyLower>();
  std::vector<double> result(A.size());
  Eigen::Map<Matrix<double>> X(result.data(), n, n);
  if (solver == Solver::fs64)
    X = forward_substitution(lower);
  else
    X = invert_f32(solver, lower.cast<float>()).cast<double>();
  return result;
}

}  // namespace deltagauge::reference
