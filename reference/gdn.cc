#include "reference/gdn.h"

#include <algorithm>

#include "core/error.h"
#include "reference/gate_split.h"
#include "reference/gdn_data.h"

namespace deltagauge::reference {
namespace {

// Adds what storing x in format met.
template <class Real, class Values>
void record_store(Ranges& ranges, std::string_view name, DType format, const Values& x) {
  const std::vector<Real> before(x.data(), x.data() + x.size());
  std::vector<Real> after = before;
  for (Real& e : after) e = round_value(format, e);
  record(ranges, name, format, std::span<const Real>(before), std::span<const Real>(after));
}

template <class Real>
Tensors recurrent(const Problem& p, const Tensors& inputs, Ranges* ranges) {
  const GdnData<Real> data(p, inputs, false);
  Tensors outputs = unwritten_outputs(p);
  Tensor& o = outputs.find("o")->second;
  const Real scale = static_cast<Real>(p.q_scale());
  const DType real = std::is_same_v<Real, double> ? DType::f64 : DType::f32;
  for_each_head(p, [&](std::int64_t n, std::int64_t h) {
    Ranges met;
    Matrix<Real> S = data.initial_state(n, h);
    Vector<Real> u(p.V);
    for (std::int64_t row = data.begin(n); row < data.begin(n) + data.length(n); ++row) {
      const Vector<Real> q = data.q_rows(h, row, 1).transpose(), k = data.k_rows(h, row, 1).transpose();
      const Real alpha = decay(p.math, static_cast<Real>(data.g_at(row, h)));
      if (alpha == 0)
        S.setZero();
      else
        S *= alpha;
      u.noalias() = S * k;
      u = data.beta_at(row, h) * (data.v_rows(h, row, 1).transpose() - u);
      S.noalias() += u * k.transpose();
      const Matrix<Real> out = (scale * (S * q)).transpose();
      write_rows(o, (row * p.HV + h) * p.V, p.V, out);
      if (!ranges) continue;
      const double before = decay_before_store(data.g_at(row, h)), after = static_cast<double>(alpha);
      record(met, "decay", real, std::span(&before, 1), std::span(&after, 1));
      record_store<Real>(met, "S", real, S);
      record_store<Real>(met, "o", p.io, out);
    }
    write_final_state(outputs, p, n, h, S);
    if (!ranges) return;
    record_store<Real>(met, "final_state", p.state, S);
#pragma omp critical(deltagauge_ranges)
    merge(*ranges, met);
  });
  return outputs;
}

template <class Real>
Tensors textbook(const Problem& p, const Tensors& inputs, std::int64_t chunk, bool taps) {
  const GdnData<Real> data(p, inputs, false);
  Tensors outputs = unwritten_outputs(p);
  if (taps) {
    outputs["w"] = unwritten(DType::f64, {p.rows(), p.HV, p.K});
    for (const char* name : {"u", "v_new"}) outputs[name] = unwritten(DType::f64, {p.rows(), p.HV, p.V});
  }
  for_each_head(p, [&](std::int64_t n, std::int64_t h) {
    Matrix<Real> S = data.initial_state(n, h);
    const std::int64_t end = data.begin(n) + data.length(n);
    for (std::int64_t first = data.begin(n); first < end; first += chunk) {
      const Index C = std::min(chunk, end - first);
      const Matrix<Real> q = data.q_rows(h, first, C), k = data.k_rows(h, first, C), v = data.v_rows(h, first, C);
      Vector<Real> to_row(C), to_end(C), beta(C);
      Matrix<Real> between = Matrix<Real>::Zero(C, C);  // exp(b_i - b_j)
      double from_start = 0;
      for (Index i = 0; i < C; ++i) {
        beta(i) = data.beta_at(first + i, h);
        double sum = 0;
        for (Index j = i; j >= 0; sum += data.g_at(first + j, h), --j) between(i, j) = decay(p.math, static_cast<Real>(sum));
        to_row(i) = decay(p.math, static_cast<Real>(from_start += data.g_at(first + i, h)));
      }
      to_end = between.row(C - 1).transpose();
      const Matrix<Real> A = (beta.asDiagonal() * (k * k.transpose())).cwiseProduct(between);
      const auto solve = [&](const Matrix<Real>& rhs) {
        return Matrix<Real>(A.template triangularView<Eigen::UnitLower>().solve(Matrix<Real>(beta.asDiagonal() * rhs)));
      };
      const Matrix<Real> w = solve(to_row.asDiagonal() * k), u = solve(v);
      const Matrix<Real> v_new = u - w * S.transpose();
      const Matrix<Real> P = (q * k.transpose()).cwiseProduct(between);
      const Matrix<Real> inter = to_row.asDiagonal() * (q * S.transpose());
      const Matrix<Real> out = static_cast<Real>(p.q_scale()) * (inter + P * v_new);
      S = to_row(C - 1) * S + (to_end.asDiagonal() * v_new).transpose() * k;
      const std::int64_t at = first * p.HV + h;
      write_rows(outputs.find("o")->second, at * p.V, p.HV * p.V, out);
      if (!taps) continue;
      write_rows(outputs.find("w")->second, at * p.K, p.HV * p.K, w);
      write_rows(outputs.find("u")->second, at * p.V, p.HV * p.V, u);
      write_rows(outputs.find("v_new")->second, at * p.V, p.HV * p.V, v_new);
    }
    write_final_state(outputs, p, n, h, S);
  });
  return outputs;
}

}  // namespace

Tensors gdn_recurrent(const Problem& problem, const Tensors& inputs, Precision precision, Ranges* ranges) {
  return precision == Precision::f64 ? recurrent<double>(problem, inputs, ranges)
                                     : recurrent<float>(problem, inputs, ranges);
}

Tensors gdn_textbook(const Problem& problem, const Tensors& inputs, std::int64_t chunk, Precision precision, bool taps) {
  if (chunk < 1) fail("chunk: expected at least 1, got ", chunk);
  return precision == Precision::f64 ? textbook<double>(problem, inputs, chunk, taps)
                                     : textbook<float>(problem, inputs, chunk, taps);
}

}  // namespace deltagauge::reference
