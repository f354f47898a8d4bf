#include "reference/solver.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "core/half.h"
#include "core/inputs.h"

namespace deltagauge::reference {
namespace {

struct Square {
  std::int64_t n;
  std::vector<double> x;
  double at(std::int64_t i, std::int64_t j) const { return x[static_cast<std::size_t>(i * n + j)]; }
};

// A_ij = beta_i exp(g) k_i.k_j of the first C of 128 tokens, rounded to f32 as kernels hold it.
Square lower_factor(const std::string& regime, std::int64_t C) {
  static std::map<std::string, Tensors> drawn;
  if (!drawn.contains(regime)) drawn[regime] = make_inputs(parse_id("gdn/fwd/len=128,HK=1,HV=1,K=128,V=16/bf16/" + regime));
  const Tensors& inputs = drawn[regime];
  const Tensor &k = get(inputs, "k"), &beta = get(inputs, "beta"), &g = get(inputs, "g");
  Square A{C, std::vector<double>(static_cast<std::size_t>(C * C))};
  for (std::int64_t i = 0; i < C; ++i) {
    double sum = 0;
    for (std::int64_t j = i; j-- > 0;) {
      sum += g.load(j + 1);
      double dot = 0;
      for (std::int64_t d = 0; d < 128; ++d) dot += k.load(i * 128 + d) * k.load(j * 128 + d);
      A.x[static_cast<std::size_t>(i * C + j)] = static_cast<float>(beta.load(i) * std::exp(sum) * dot);
    }
  }
  return A;
}

Square inverse(Solver solver, const Square& A) { return {A.n, invert(solver, A.n, A.x)}; }

double norm_inf(const Square& A, double diagonal = 0) {
  double largest = 0;
  for (std::int64_t i = 0; i < A.n; ++i) {
    double sum = diagonal;
    for (std::int64_t j = 0; j < A.n; ++j) sum += std::fabs(A.at(i, j));
    largest = std::max(largest, sum);
  }
  return largest;
}
double relative_error(const Square& got, const Square& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < got.x.size(); ++i) {
    error += (got.x[i] - want.x[i]) * (got.x[i] - want.x[i]);
    size += want.x[i] * want.x[i];
  }
  return std::sqrt(error / size);
}
double largest(const Square& A) {  // strictly below the diagonal
  double x = 0;
  for (std::int64_t i = 0; i < A.n; ++i)
    for (std::int64_t j = 0; j < i; ++j) x = std::isnan(A.at(i, j)) ? INFINITY : std::max(x, std::fabs(A.at(i, j)));
  return x;
}

// Largest entry of A^power, which doubling passes through.
double largest_power(const Square& A, std::int64_t power) {
  Square P = A;
  for (std::int64_t reach = 1; reach < power; reach *= 2) {
    Square next{A.n, std::vector<double>(A.x.size())};
    for (std::int64_t i = 0; i < A.n; ++i)
      for (std::int64_t t = 0; t < i; ++t)
        for (std::int64_t j = 0; j < t; ++j) next.x[static_cast<std::size_t>(i * A.n + j)] += P.at(i, t) * P.at(t, j);
    P = next;
  }
  return largest(P);
}

constexpr const char* kHard[] = {"gate=none/keys=repeated/beta=const=0.99966",
                                 "gate=none/keys=repeated/beta=const=0.835",
                                 "gate=constant=-0.001/keys=repeated/beta=const=0.835",
                                 "gate=none/keys=rho=0.9/beta=near1",
                                 "gate=none/keys=alternating/beta=near1",
                                 "gate=mild/keys=iid"};

TEST(Solver, substitution_in_f64_inverts) {
  for (const char* regime : kHard)
    for (std::int64_t C : {1, 5, 16, 37, 64, 128}) {
      const Square A = lower_factor(regime, C), X = inverse(Solver::fs64, A);
      double residual = 0;
      for (std::int64_t i = 0; i < C; ++i)
        for (std::int64_t j = 0; j < C; ++j) {
          double sum = X.at(i, j) - (i == j);
          for (std::int64_t t = 0; t < i; ++t) sum += A.at(i, t) * X.at(t, j);
          residual = std::max(residual, std::fabs(sum));
        }
      const double n = static_cast<double>(2 * C), gamma = n * 0x1p-53 / (1 - n * 0x1p-53);
      EXPECT_LE(residual, gamma * norm_inf(A, 1) * norm_inf(X)) << regime << " C=" << C;
    }
}

TEST(Solver, f32_substitution_and_blocks_stay_within_the_forward_error_bound_and_the_free_bound) {
  for (const char* regime : kHard)
    for (std::int64_t C : {16, 23, 64, 128})
      for (Solver solver : {Solver::fs32, Solver::block16}) {
        const Square A = lower_factor(regime, C), exact = inverse(Solver::fs64, A), X = inverse(solver, A);
        // |X - X*| <= gamma |X*| |I + A| |X*| for substitution; a block's inverse in the middle costs its own condition once
        // more.
        const double n = static_cast<double>(3 * C), gamma = n * 0x1p-24 / (1 - n * 0x1p-24);
        const double condition = norm_inf(A, 1) * norm_inf(exact);
        EXPECT_LE(relative_error(X, exact), gamma * condition) << regime << " " << name(solver);
        EXPECT_LE(largest(X), largest(exact) + gamma * condition * norm_inf(exact)) << regime << " " << name(solver);
      }
}

TEST(Solver, halves_merged_in_tf32_lose_what_the_roundings_of_bounded_factors_explain) {
  for (const char* regime : kHard)
    for (std::int64_t C : {16, 23, 32, 40, 64}) {
      const Square A = lower_factor(regime, C), exact = inverse(Solver::fs64, A), X = inverse(Solver::halves32_tf32, A);
      // A first-order u |D_1| |A_10| |D_0| for each of D_0, A_10, T and D_1, and u |D| for the halves themselves; f32 sums
      // are far below one more.
      const double u = unit_roundoff(DType::f16), gamma = 6 * u / (1 - 6 * u);  // tf32 has as many fraction bits
      Square error = X;
      for (std::size_t i = 0; i < error.x.size(); ++i) error.x[i] -= exact.x[i];
      EXPECT_LE(norm_inf(error), gamma * norm_inf(A, 1) * norm_inf(exact) * norm_inf(exact)) << regime << " C=" << C;
      const Square block16 = inverse(Solver::block16, A);
      for (std::int64_t i = 0; i < C; ++i)
        for (std::int64_t j = i < 32 ? 0 : 32; j < C;
             ++j) {  // the halves: those of the first rows as block16 has them, stored
          const double value = i < 32 ? block16.at(i, j) : X.at(i, j);
          ASSERT_EQ(X.at(i, j), round_tf32(static_cast<float>(value))) << regime << " " << i << " " << j;
        }
    }
}

TEST(Solver, doubling_loses_what_the_powers_of_repeated_keys_predict) {
  struct Row {
    Solver solver;
    std::int64_t C, block;
    double u;  // of the store
  };
  for (const Row& row : {Row{Solver::doubling16_f16, 16, 16, 0x1p-11}, Row{Solver::doubling16_bf16, 16, 16, 0x1p-8},
                         Row{Solver::doubling_f32, 32, 32, 0x1p-24}, Row{Solver::doubling_f32, 64, 64, 0x1p-24}}) {
    const Square A = lower_factor("gate=none/keys=repeated/beta=const=0.835", row.C);
    const Square exact = inverse(Solver::fs64, A);
    const double error = relative_error(inverse(row.solver, A), exact);
    const double growth = largest_power(A, row.block / 2);       // binomial(C - 2, C / 2 - 1) for unit keys and beta 1
    const double scale = std::sqrt(static_cast<double>(row.C));  // the inverse's Frobenius norm is about this
    EXPECT_GE(error, row.u * growth / scale / scale) << name(row.solver) << " growth " << growth;
    EXPECT_LE(error, row.u * growth * scale * scale) << name(row.solver) << " growth " << growth;
    // The true inverse obeys |X_ij| <= beta |k_i||k_j|; these pass it by their error.
    EXPECT_GT(largest(inverse(row.solver, A)), 0.835) << name(row.solver);
  }
}

TEST(Solver, whole_chunk_doubling_of_repeated_keys_is_useless_and_blocks_are_not) {
  for (const char* regime :
       {"gate=constant=-0.001/keys=repeated/beta=const=0.835", "gate=none/keys=repeated/beta=const=0.99966"}) {
    const Square A = lower_factor(regime, 64), exact = inverse(Solver::fs64, A);
    EXPECT_GT(relative_error(inverse(Solver::doubling_f32, A), exact), 1) << regime;
    EXPECT_LT(relative_error(inverse(Solver::block16, A), exact), unit_roundoff(DType::f16)) << regime;
    EXPECT_LT(relative_error(inverse(Solver::halves32_tf32, A), exact), unit_roundoff(DType::bf16)) << regime;
  }
}

TEST(Solver, lattice_keys_are_inverted_exactly_by_every_stable_method) {
  const Case c = parse_id("gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/bf16/gate=none/data=lattice/scale=1");
  const Tensors inputs = make_inputs(c);
  const Tensor &k = get(inputs, "k"), &beta = get(inputs, "beta");
  Square A{64, std::vector<double>(64 * 64)};
  for (std::int64_t i = 0; i < 64; ++i)
    for (std::int64_t j = 0; j < i; ++j)
      for (std::int64_t d = 0; d < 16; ++d)
        A.x[static_cast<std::size_t>(i * 64 + j)] += beta.load(i) * k.load(i * 16 + d) * k.load(j * 16 + d);
  const Square exact = inverse(Solver::fs64, A);
  for (Solver solver : {Solver::fs32, Solver::block16, Solver::halves32_tf32})
    EXPECT_EQ(inverse(solver, A).x, exact.x) << name(solver);
}

}  // namespace
}  // namespace deltagauge::reference
