// Forward of gdn on the CPU, three ways (docs/math.md#gdn); b_i = sum of g up to and including row i of the chunk.
//   recurrent   token by token
//   textbook    the chunk form with w and u: v_new = Ainv (beta v) - Ainv (beta k exp(b)) S^T, one triangular solve
//   staged      what the kernels do, the residual form, which needs one product fewer:
//     A_ij = beta_i exp(b_i - b_j) k_i.k_j (j < i)    Ainv = (I + A)^-1                    stored as staging.Ainv
//     resid_i = beta_i (v_i - exp(b_i) S k_i)         S stored as staging.S                stored as staging.resid
//     v_new = Ainv resid                                                                   stored as staging.v_new
//     o_i = scale (exp(b_i) S q_i + sum_{j<=i} P_ij v_new_j)   P_ij = exp(b_i - b_j) q_i.k_j stored as staging.P
//       with staging.scaled_P: o_i = (scale exp(b_i)) S q_i + sum_{j<=i} (scale P_ij) v_new_j        scale P_ij stored
//     S' = exp(b_C) S + sum_j (exp(b_C - b_j) v_new_j) k_j^T   the decayed v_new stored as staging.v_new_decayed
// With raw_gate=on g is the gate's transform (gate.h) in f32, or f64 when staging.accumulate is f64.
// b_i - b_j is summed over the tokens between, in f64, so an early g of -300, -1e38 or -inf leaves the later decays alone.
// A decay of exactly 0 clears what it multiplies, infinities too. b_C stands at the last token of the chunk. S is carried in
// f32 (f64 when staging.accumulate is f64).
#pragma once
#include <cstdint>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/staging.h"

namespace deltagauge::reference {

// The working type of the two plain forms.
enum class Precision { f32, f64 };

// ranges, where given: decay, S after each token, o, final_state.
Tensors gdn_recurrent(const Problem& problem, const Tensors& inputs, Precision precision, Ranges* ranges = nullptr);
// chunk >= 1. With taps also w [T, HV, K], u and v_new [T, HV, V].
Tensors gdn_textbook(const Problem& problem, const Tensors& inputs, std::int64_t chunk, Precision precision, bool taps);

// A single slip inside the staged algorithm, for the planted faults of faults.h. Slips that name one place hit the last
// head of the longest sequence.
enum class Slip {
  none,
  state_dropped,        // S = 0 before the second chunk of one head
  end_gate_off_by_one,  // the last token's g is missing from the decays to the chunk's end
  end_gate_of_padding,  // b_C read from slot C - 1 of a short chunk, which holds 0
  error_before_decay,   // v_t - S_{t-1} k_t instead of v_t - exp(g_t) S_{t-1} k_t
  last_token_twice,     // the last token's write is added to the state twice
  decay_clamped,        // the cumulative decay is held at 1e-10 so that it can be divided by
  P_without_diagonal,   // j < i where j <= i is right
  P_sees_next,          // j <= i + 1
  Ainv_row_shifted,     // row i of the strictly lower part holds row i - 1
  v_new_not_decayed,    // in the state update
  inter_not_decayed,    // o reads S without exp(b_i)
  read_after_update,    // o reads S' where S is right
  tail_reads_next,      // a short chunk takes in the first rows of the next sequence
  cumsum_bf16,          // b is rounded to bf16 at every step
  cumsum_not_reset,     // b runs on over chunk boundaries
};

// staging.chunk >= 1. Throws Error when the staging cannot hold: tensor_core sums of f32 or f64 operands.
Tensors gdn_staged(const Problem& problem, const Tensors& inputs, const Staging& staging, bool taps, Ranges* ranges,
                   Slip slip = Slip::none);

}  // namespace deltagauge::reference
