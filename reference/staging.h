// Staging: where a kernel rounds. A kernel names one; reference/ replays the same algorithm on the CPU, rounding at the
// same places, and what that loses against the oracle is the budget the kernel gets. One table, stagings().
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/taps.h"

namespace deltagauge::reference {

// How an intermediate is stored when it becomes an operand. io: the problem's io dtype. split: two io values, hi + lo;
// tf32: to nearest. tf32_cut: times kTf32Up, then cut off (core/half.h). split_tf32: two tf32 values whatever io is, hi to
// nearest and lo cut off, as a kernel hands them to the tensor core.
// io_scaled, split_scaled: io and split of the value times a power of two per row of the state that brings the row's
// largest to [2^13, 2^14), so that f16 neither overflows nor loses bits; for S and v_new_decayed only, and the same as io
// and split where io is not f16.
enum class Store { f64, f32, tf32, io, split, f16, bf16, split_tf32, io_scaled, split_scaled, tf32_cut };
// How a sum of products is accumulated: exactly rounded steps in f32 (round to nearest), or as the tensor core does it.
enum class Accumulate { f64, f32, tensor_core };
// How (I + A)^-1 is formed.
enum class Solver { fs64, fs32, block16, doubling16_f16, doubling16_bf16, doubling_f32, halves32_tf32 };
// exp(b_i - b_j) of rows i >= j (gdn.h): directly from the gates between them, or as exp(b_i - b_r) exp(b_r - b_j) with r
// the row before the block of rows that holds i, its first, or its middle row (rows / 2 from 0).
enum class Anchor { direct, before, first, middle };
// exp in math=fast: 2^y of the rounded product y = x log2(e), subnormals kept; or the same by ex2.approx, off by up to
// 2^-22, which with ftz gives 0 for what is subnormal. Only the decays are flushed: sums and products keep their subnormals.
enum class FastExp { exp2f, ex2, ex2_ftz };

std::string_view name(Store store);  // as the enumerators are spelled
std::string_view name(Accumulate accumulate);
std::string_view name(Solver solver);

// Where the second factor of a split reaches s rows back it leaves its format at |g| = E / (s log2 e) nats a token, 2^E the
// end of the format (f32, bf16: 128, f16: 16).
struct GateSplit {
  Anchor anchor = Anchor::direct;
  std::int64_t rows = 16;     // of a block
  Store factor = Store::f32;  // f32, bf16 or f16, of both factors
  bool endless = false;       // the factors' significands are rounded, their exponents have no end
};

struct Staging {
  std::string_view name;  // "chunk_sm80.plain"
  std::string_view summary;
  std::int64_t chunk;                 // 0: token by token
  Store Ainv, P, S;                   // P: masked and gated q k^T. reference/gdn.h has the equations
  Store resid, v_new, v_new_decayed;  // resid: beta (v - decay S k); v_new_decayed: v_new as it enters the state
  Store decay;
  Accumulate accumulate;
  Solver solver;
  std::string_view op = "gdn";  // the op it belongs to
  // scale P is stored in place of P, and o = (scale exp(b)) S q + (scale P) v_new; else the sum is scaled at the end.
  bool scaled_P = false;
  // Which of the answers that f32 arithmetic leaves open: 0 the plain one; else every A_IJ and P_IJ is first multiplied by
  // 1 + 2^-22 x, x in [-1, 1) drawn from this. These are rounded once for all value rows, so a tie that falls the other way
  // moves all rows of a head at once.
  std::uint64_t draw = 0;
  // Of stagings with chunks: whether q and k that are to be normalised stay as they are, and with r_i = 1 / |k_i| and s_i =
  // 1 / |q_i| rows of A are beta_i r_i^2, those of resid beta_i r_i and those of P and S q s_i times what they are without;
  // what stands for v_new is r_i v_new. Else rows are normalised and rounded to io.
  bool folded_norms = false;
  GateSplit gate{};
  FastExp fast_exp = FastExp::exp2f;
};
std::span<const Staging> stagings();
// Schemes that other kernels use and whose range ends early, to show where (docs/range.md). Not among stagings(): a kernel
// that declares one is not thereby right.
std::span<const Staging> peer_stagings();
const Staging& staging(std::string_view name);  // of either list; throws Error naming the known ones

// The same with every significand rounded as before and the exponents of f32: f16 stores become tf32, which has as many
// fraction bits, split gates lose the ends of their factors, fast exponentials keep subnormals.
Staging without_range_limits(const Staging& staging, DType io);

// Forward of problem.op on the CPU with that staging. Returns the outputs in their own dtypes (o in io, final_state in
// state; rows past the active end are NaN), and with taps also the intermediates it forms, as f32 or f64 (names and shapes
// as oracle::Answer::taps: g_cum Akk Ainv v_new S, and resid [T, HV, V], P [NC, HV, C, C]). Ainv, P, resid and v_new are
// as stored (P over the scale it was stored with); S is the state before the chunk as it is carried. ranges, where given,
// collects what each store met.
// The result does not depend on the number of threads. Throws Error on a missing or misshapen input.
Tensors run(const Problem& problem, const Tensors& inputs, const Staging& staging, bool taps, Ranges* ranges = nullptr);

}  // namespace deltagauge::reference
