// Budgets: what a kernel may lose, derived per row, never written down (docs/numerics.md).
//   B_t = max_s E_s + 1/2 ||r_t|| + F_t        E_s = ||emu_s - gold_s||        r_tj = max(u |gold_tj|, eta)
// emu is the CPU emulator that rounds where the kernel says it rounds, gold the oracle, s runs over rows |s - t| <= 8 of the
// same series (rows.h). Half of the output rounding, unit roundoff u of the stored format, is the root mean square of what
// one more rounding does; eta is half a step of that format's subnormals (in fast mode, where f32 subnormals are flushed,
// the smallest normal f32), 0 where gold is 0. F is the floor of floor.h: what f32 summation in another order may add even
// where the emulator happens to be exact.
//
// A state (final_state, S) is one moment of its sequence: a row's error is a sum over the few tokens that still count, so
// one row is a small sample, but all value rows of a head err by the same law. For a state s runs over all of them, each
// scaled by its size m = max(||gold||, median ||gold||):  max_s E_s m_t / m_s. And its rows are sums of v_new rows that were
// stored as operands, so u is that of the staging's v_new_decayed where it is larger than the stored format's.
// A row of zeros that the emulator leaves alone has no budget but F.
//
// A row with non-finite E earns no E: an emulator that overflows is no licence to. An unstable inverse is none either, so
// the emulator runs the kernel's staging with the low-precision doubling solvers replaced by forward substitution.
//
// The element statistic shares the row's budget over D_t = (sum_j b_j)^2 / sum_j b_j^2 elements with
// b_j = max_{|s - t| <= 8} |emu_sj - gold_sj| + 1/2 r_tj: all of them where errors are alike, one where a row has one
// non-zero element. A plain sqrt(D) would fail a right kernel on one-hot keys (D = 128: sqrt(D) > 9).
#pragma once
#include <span>
#include <string_view>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/staging.h"
#include "validate/metrics.h"
#include "validate/rows.h"

namespace deltagauge::validate {

// emulated and gold have one shape, that of rows; floor holds F by row index (rows.total of them). stored: the dtype that
// the judged tensor is stored in. staging: as the kernel declares it.
Budget make_budget(const Problem& problem, std::string_view tensor, const Rows& rows, const Tensor& emulated,
                   const Tensor& gold, std::span<const double> floor, DType stored, const reference::Staging& staging);

// The staging whose emulation earns the budget of `declared`: the same, with a stable solver.
reference::Staging budget_staging(const reference::Staging& declared);

}  // namespace deltagauge::validate
