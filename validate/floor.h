// The floor F of a row budget: first-order rounding error of the exact recurrence in f32, from the inputs alone. It stands
// for what the emulator cannot show in one sample: a scalar k . q that it happens to round exactly is a common factor of a
// whole row, and another order of summation rounds it differently. One rounding is independent of the next, so variances
// add; a dot product of length n errs by sqrt(n) u |a||b| (numerics of probabilistic rounding bounds, lambda = 1).
// Per value row, with the unit roundoff u of the accumulator (f32: 2^-24; tensor core, which truncates: 2^-23),
// d = exp(g_t), b the running sum of g since the chunk began or a gate closed (d = 0, which leaves nothing of what was
// before it), s = |row of S| and e = its error:
//   s <- d s       e^2 <- d^2 e^2 + (u (2 + |b|) s)^2               exp and its argument
//   w  = beta u (sqrt(K) s |k| + |v|)                               u_t = beta (v - D k)
// A g that is transformed here has an error c u of its own, by the steps of gate_floor: |b| + c in place of |b|.
//   e^2 <- e^2 + (|k| w)^2 + (u s)^2       s^2 <- s^2 + (beta |k| |v|)^2
//   o: scale |q| (e + sqrt(K) u s)         v_new: w + beta |k| e
// (I - beta k k^T) does not amplify for beta |k|^2 <= 2. Beside 16-bit storage F is below a hundredth of B.
// Ainv, Akk, w, u: entries bounded by |Ainv_ij| <= beta_i |k_i||k_j| decay(i, j), dot products of length K + i, C.
// l2norm: a sum of K squares, rsqrt and a product. gate: its elementary functions with their condition numbers. gdn_decode:
// one step of the recurrence, with the errors of both before it.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/staging.h"
#include "validate/rows.h"

namespace deltagauge::validate {

// By row index of `tensor` (an output or a tap); rows in no series 0.
std::vector<double> rounding_floor(const Problem& problem, const Tensors& inputs, const reference::Staging& staging,
                                   std::string_view tensor, const Rows& rows);

// By element of Ainv: |Ainv_ij| can be no larger than beta_i |k_i||k_j| exp(g_{j+1} + .. + g_i) for j < i as long as
// beta |k|^2 <= 2 from j to i (infinite past a token that breaks this), 1 for j = i, 0 above and in rows of no series.
std::vector<double> inverse_bound(const Problem& problem, const Tensors& inputs, const Rows& rows);

}  // namespace deltagauge::validate
