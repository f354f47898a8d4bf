#include "validate/budget.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/error.h"

namespace deltagauge::validate {
namespace {

constexpr std::int64_t kReach = 8;  // rows to either side that lend their error

// Replaces x[0..n) by its maximum over |i - j| <= kReach.
void window_max(std::vector<double>& x) {
  const auto n = static_cast<std::int64_t>(x.size());
  const std::vector<double> source = x;
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = std::max<std::int64_t>(0, i - kReach); j < std::min(n, i + kReach + 1); ++j)
      x[static_cast<std::size_t>(i)] = std::max(x[static_cast<std::size_t>(i)], source[static_cast<std::size_t>(j)]);
}

// Replaces each error by the largest of all, scaled by size.
void scaled_max(std::vector<double>& error, const std::vector<double>& norm) {
  auto sorted = norm;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  const auto size = [&](std::size_t i) { return std::max(norm[i], *middle); };
  double worst = 0;
  for (std::size_t i = 0; i < error.size(); ++i)
    if (error[i] > 0 && size(i) > 0) worst = std::max(worst, error[i] / size(i));
  for (std::size_t i = 0; i < error.size(); ++i)
    if (norm[i] > 0 || error[i] > 0) error[i] = std::max(error[i], worst * size(i));
}

// An infinity that the right value rounds to, too, is no error.
double error_of(DType stored, double emulated, double right) {
  return !std::isfinite(emulated) && round_to(stored, right) == emulated ? 0 : emulated - right;
}

// Unit roundoff of an operand kept in that store.
double unit_of(reference::Store store, DType io) {
  using reference::Store;
  const double u = unit_roundoff(io), bf16 = unit_roundoff(DType::bf16), f16 = unit_roundoff(DType::f16);
  switch (store) {
    case Store::f64:
      return unit_roundoff(DType::f64);
    case Store::f32:
      return unit_roundoff(DType::f32);
    case Store::tf32:
    case Store::tf32_cut:
    case Store::f16:
      return f16;  // as many fraction bits
    case Store::bf16:
      return bf16;
    case Store::split_tf32:
      return f16 * f16;
    case Store::io:
    case Store::io_scaled:
      return u;
    case Store::split:
    case Store::split_scaled:
      return u * u;
  }
  return u;
}

}  // namespace

reference::Staging budget_staging(const reference::Staging& declared) {
  using reference::Solver;
  reference::Staging staging = declared;
  const bool stable = staging.solver == Solver::fs64 || staging.solver == Solver::fs32 ||
                      staging.solver == Solver::block16 || staging.solver == Solver::halves32_tf32;
  if (!stable) staging.solver = Solver::fs32;
  return staging;
}

Budget make_budget(const Problem& problem, std::string_view tensor, const Rows& rows, const Tensor& emulated,
                   const Tensor& gold, std::span<const double> floor, DType stored, const reference::Staging& staging) {
  if (emulated.shape() != gold.shape())
    fail("budget: expected the emulator to give ", to_string(gold.shape()), ", got ", to_string(emulated.shape()));
  const bool state = tensor == "final_state" || tensor == "S";
  const auto emu = to_f64(emulated), right = to_f64(gold);
  const double u = std::max(unit_roundoff(stored), state ? unit_of(staging.v_new_decayed, problem.io) : 0.0);
  const double eta =
      std::max(smallest_subnormal(stored) / 2, problem.math == MathMode::fast ? smallest_normal(DType::f32) : 0.0);
  Budget budget;
  budget.row.assign(static_cast<std::size_t>(rows.total), 0);
  budget.spread.assign(static_cast<std::size_t>(rows.total), static_cast<double>(rows.width));
  budget.from = "emulator " + std::string(staging.name) + " + 0.5 u_" + std::string(name(stored)) + " |want| + f32 floor";
  for (const Series& s : rows.series) {
    const auto count = static_cast<std::size_t>(s.count);
    const auto at = [&](std::size_t i, std::int64_t j) {
      return static_cast<std::size_t>((s.first + static_cast<std::int64_t>(i) * s.stride) * rows.width + j);
    };
    std::vector<double> error(count, 0), norm(count, 0), rounding(count, 0), shares(count, 0), share_squares(count, 0);
    std::vector<double> column(count);
    for (std::int64_t j = 0; j < rows.width; ++j) {
      for (std::size_t i = 0; i < count; ++i) {
        const double e = error_of(stored, emu[at(i, j)], right[at(i, j)]);
        error[i] += e * e;
        column[i] = std::isfinite(e) ? std::abs(e) : 0;
      }
      window_max(column);
      for (std::size_t i = 0; i < count; ++i) {
        const double want = right[at(i, j)];
        const double r = want == 0 || !std::isfinite(want) ? 0 : std::max(u * std::abs(want), eta);
        rounding[i] += r * r;
        norm[i] += std::isfinite(want) ? want * want : 0;
        const double share = column[i] + r / 2;
        shares[i] += share;
        share_squares[i] += share * share;
      }
    }
    for (double& e : error) e = std::isfinite(e) ? std::sqrt(e) : 0;
    for (double& n : norm) n = std::sqrt(n);
    state ? scaled_max(error, norm) : window_max(error);
    for (std::size_t i = 0; i < count; ++i) {
      const auto row = static_cast<std::size_t>(s.first + static_cast<std::int64_t>(i) * s.stride);
      budget.row[row] = error[i] + std::sqrt(rounding[i]) / 2 + floor[row];
      if (share_squares[i] > 0) budget.spread[row] = shares[i] * shares[i] / share_squares[i];
    }
  }
  return budget;
}

}  // namespace deltagauge::validate
