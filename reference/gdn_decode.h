// One token a sequence on a state pool in f32 (docs/math.md#gdn_decode), in the order of the kernel. q, k: rows normalised
// and kept in f32; alpha = exp(softplus gate), beta = sigmoid(raw_beta) or twice that; S: a value row of the slot.
//   u = beta (v - alpha S k)    o = scale (alpha S q + u k.q)    S' = alpha S + u k        o in io, S' in state
// alpha = 0 clears S, infinities too.
#pragma once
#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::reference {

// A slip for the planted faults of faults.h.
enum class DecodeSlip {
  none,
  eps_on_mean,         // eps is added to the mean of squares
  query_raw,           // q is not normalised
  beta_bf16,           // the sigmoid is rounded to bf16
  beta_raw,            // raw_beta is taken as beta
  gate_bounded,        // -5 sigmoid(exp(A_log) y) in place of the softplus
  A_log_linear,        // A_log is taken as a
  dt_bias_missing,     // softplus(raw_gate)
  gate_of_head0,       // every head has head 0's alpha
  exp2_for_exp,        // alpha = 2^g
  error_before_decay,  // u = beta (v - S k)
  read_before_write,   // o = scale alpha S q
  head_map_modulo,     // value head h reads key head h mod HK
  scale_missing,
  neg_eigval_ignored,  // beta = sigmoid(raw_beta) where twice that is right
  slot_of_next,        // the state is that of the next sequence
  state_ignored,       // the state is taken as zero
  flag_ignored,        // a slot is read although has_initial_state is false
  no_slot_computed,    // a sequence without a slot gets what a state of zero gives
  state_bf16,          // S' is rounded to bf16 in an f32 pool
};

// o and final_state in their own dtypes. Rows of o past the batch and slots of no sequence are NaN; without a slot o is
// zero.
Tensors gdn_decode(const Problem& problem, const Tensors& inputs, DecodeSlip slip = DecodeSlip::none);

}  // namespace deltagauge::reference
