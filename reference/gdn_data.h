// What every form of gdn shares: the inputs as contiguous arrays in the working type, the tasks, the outputs.
#pragma once
#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/op.h"
#include "core/problem.h"
#include "core/tensor.h"
#include "reference/exponential.h"
#include "reference/gate.h"
#include "reference/l2norm.h"

namespace deltagauge::reference {

template <class Real>
using Matrix = Eigen::Matrix<Real, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
template <class Real>
using Vector = Eigen::Matrix<Real, Eigen::Dynamic, 1>;
using Index = Eigen::Index;

template <class Real>
struct GdnData {
  const Problem& p;
  std::vector<std::int64_t> offsets;    // [N + 1]
  std::vector<Real> q, k, v, beta, h0;  // [T, HK, K] [T, HK, K] [T, HV, V] [T, HV] [N or P, HV, V, K]; h0 empty: zero
  std::vector<double> g;                // [T, HV] log decays, rounded to Real where they are transformed here
  std::vector<std::int64_t> slots = p.state_indices();  // of a pool, or empty
  std::vector<bool> has = p.has_initial_state();

  std::vector<Real> q_norm, k_norm;  // [T, HK] 1 / |q|, 1 / |k| where q and k are to be normalised and are not, or empty

  // Rows of q and k that are to be normalised are, and rounded to io where Real is float; folded: see q_norm.
  GdnData(const Problem& problem, const Tensors& inputs, bool folded)
      : p(problem),
        offsets(problem.offsets()),
        q(values(inputs, "q")),
        k(values(inputs, "k")),
        v(values(inputs, "v")),
        beta(values(inputs, "beta")),
        g(log_decays<Real>(problem, inputs)) {
    if (find(inputs, "initial_state")) h0 = values(inputs, "initial_state");
    if (p.l2norm == Switch::on)
      for (const auto [x, norms] : {std::pair{&q, &q_norm}, std::pair{&k, &k_norm}})
        for (std::int64_t row = 0; row < p.tokens() * p.HK; ++row)
          if (folded)
            norms->push_back(inverse_norm(p.K, x->data() + row * p.K));
          else
            normalise_row(p.K, x->data() + row * p.K, std::is_same_v<Real, float> ? p.io : DType::f64);
  }

  // Rows [first, first + count) of value head h, as matrices.
  Matrix<Real> q_rows(std::int64_t h, std::int64_t first, Index count) const {
    return rows(q, key_head(h), first, count, p.HK, p.K);
  }
  Matrix<Real> k_rows(std::int64_t h, std::int64_t first, Index count) const {
    return rows(k, key_head(h), first, count, p.HK, p.K);
  }
  Vector<Real> q_norms(std::int64_t h, std::int64_t first, Index count) const { return norms(q_norm, h, first, count); }
  Vector<Real> k_norms(std::int64_t h, std::int64_t first, Index count) const { return norms(k_norm, h, first, count); }
  Matrix<Real> v_rows(std::int64_t h, std::int64_t first, Index count) const { return rows(v, h, first, count, p.HV, p.V); }
  Real beta_at(std::int64_t row, std::int64_t h) const { return beta[static_cast<std::size_t>(row * p.HV + h)]; }
  double g_at(std::int64_t row, std::int64_t h) const { return g[static_cast<std::size_t>(row * p.HV + h)]; }
  Matrix<Real> initial_state(std::int64_t n, std::int64_t h) const {
    const auto place = static_cast<std::size_t>(n);
    if (h0.empty() || (p.slots && !has[place])) return Matrix<Real>::Zero(p.V, p.K);
    const std::int64_t slot = p.slots ? slots[place] : n;
    return Eigen::Map<const Matrix<Real>>(h0.data() + (slot * p.HV + h) * p.V * p.K, p.V, p.K);
  }
  std::int64_t length(std::int64_t n) const { return p.lengths[static_cast<std::size_t>(n)]; }
  std::int64_t begin(std::int64_t n) const { return offsets[static_cast<std::size_t>(n)]; }

 private:
  Vector<Real> norms(const std::vector<Real>& of, std::int64_t h, std::int64_t first, Index count) const {
    if (of.empty()) return Vector<Real>::Ones(count);
    return rows(of, key_head(h), first, count, p.HK, 1).col(0);
  }
  std::int64_t key_head(std::int64_t h) const { return h / (p.HV / p.HK); }
  static std::vector<Real> values(const Tensors& inputs, std::string_view name) {
    const std::vector<double> wide = to_f64(get(inputs, name));
    return std::vector<Real>(wide.begin(), wide.end());
  }
  static Matrix<Real> rows(const std::vector<Real>& x, std::int64_t head, std::int64_t first, Index count,
                           std::int64_t heads, std::int64_t width) {
    return Eigen::Map<const Matrix<Real>, 0, Eigen::OuterStride<>>(x.data() + (first * heads + head) * width, count, width,
                                                                   Eigen::OuterStride<>(heads * width));
  }
};

// A tensor of NaN.
inline Tensor unwritten(DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  for (std::int64_t i = 0; i < t.numel(); ++i) t.store(i, std::numeric_limits<double>::quiet_NaN());
  return t;
}
// The op's outputs, all NaN but for the rows of o whose sequence has no slot of the pool, which are zero.
inline Tensors unwritten_outputs(const Problem& problem) {
  Tensors outputs;
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) outputs[spec.name] = unwritten(spec.dtype, spec.shape);
  const auto slots = problem.state_indices();
  const auto offsets = problem.offsets();
  const std::int64_t width = problem.HV * problem.V;
  for (std::size_t n = 0; n < slots.size(); ++n)
    for (std::int64_t i = offsets[n] * width; slots[n] <= 0 && i < offsets[n + 1] * width; ++i)
      outputs.find("o")->second.store(i, 0);
  return outputs;
}
// Writes a block of rows to storage of t that starts at offset, rows stride elements apart.
template <class Real>
void write_rows(Tensor& t, std::int64_t offset, std::int64_t stride, const Matrix<Real>& block) {
  for (Index i = 0; i < block.rows(); ++i)
    for (Index j = 0; j < block.cols(); ++j) t.store(offset + i * stride + j, static_cast<double>(block(i, j)));
}
template <class Real>
void write_final_state(Tensors& outputs, const Problem& p, std::int64_t n, std::int64_t h, const Matrix<Real>& S) {
  if (p.final_state == Switch::off) return;
  const std::int64_t slot = p.slots ? p.state_indices()[static_cast<std::size_t>(n)] : n;
  write_rows(outputs.find("final_state")->second, (slot * p.HV + h) * p.V * p.K, p.K, S);
}

// Calls head(n, h) for every sequence and value head, on all threads; of a pool, for the sequences that have a slot.
template <class Head>
void for_each_head(const Problem& p, Head head) {
  const std::int64_t tasks = p.sequences() * p.HV;
  const auto slots = p.state_indices();
#pragma omp parallel for schedule(dynamic)
  for (std::int64_t task = 0; task < tasks; ++task)
    if (slots.empty() || slots[static_cast<std::size_t>(task / p.HV)] > 0) head(task / p.HV, task % p.HV);
}

}  // namespace deltagauge::reference
