// (I + A)^-1 of one chunk, A strictly lower triangular [n, n], by the methods kernels use. The stable ones:
//   fs64, fs32        row by row: X_i = e_i - sum_{j<i} A_ij X_j
//   block16           16 x 16 diagonal blocks by fs32, then X_IJ = -X_II sum_{J<=L<I} A_IL X_LJ by f32 products
//   halves32_tf32     32 x 32 diagonal blocks D by block16, then X_10 = -D_1 T, T = A_10 D_0 (more blocks: as in block16),
//                     f32 sums of products of tf32 values: D, A_10 and T are rounded to nearest, X_10 in the result is not.
//                     No doubling: a block form as block16, whose factors are bounded, in the format Ainv is stored in
// The unstable ones (docs/numerics.md#triangular-factor), kept so that they can be shown to fail:
//   doubling          (I - A)(I + A^2)(I + A^4)... ; powers of A grow like binomials when keys repeat
//   doubling16_f16    16 x 16 blocks by doubling, every step in f16; merged as block16, stored in f16
//   doubling16_bf16   the same with bf16 stores and f32 sums
//   doubling_f32      the whole chunk by doubling in f32
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "reference/staging.h"

namespace deltagauge::reference {

// A, result: n x n row-major, f64 holding what the method's own type holds (fs64: f64, else f32 or less). The diagonal of
// A and what is above it are not read.
std::vector<double> invert(Solver solver, std::int64_t n, std::span<const double> A);

}  // namespace deltagauge::reference
