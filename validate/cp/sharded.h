// A staged op over ranks: spans out of global tensors, one rank's call around one all-gather, global tensors out of spans.
#pragma once
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"
#include "kernels/cp/plan.h"
#include "kernels/cp/routing.h"
#include "kernels/cp/transport.h"
#include "validate/cp/staged_op.h"

namespace deltagauge::validate::cp {

// Single slips of the recipe, to show that the check sees them.
enum class Fault {
  none,
  fold_by_rank,          // predecessors folded in the order of their ranks
  transition_on_left,    // S A^T + B
  boundary_token_twice,  // a segment before a cut takes in the token after it
  first_decay_dropped,   // g = 0 at the first token of every segment but a document's first
  document_leak          // a document starts from the state of the one before it in the span
};

// What a rank holds before the exchange. rows past the span's end are NaN.
struct Span {
  Problem problem;       // a sequence a segment, as many as the routing has room for
  Tensors inputs;        // q k v g beta
  Tensor initial_state;  // [segments, HV, V, K] f64, of the segments that start a document; empty: zero
};
Span span_of(const Problem& whole, const Tensors& inputs, const kernels::cp::RankPlan& rank, const kernels::cp::Caps& caps);

struct RankAnswer {
  Tensors run;       // o [rows, HV, V], final_state [segments, HV, V, K], taps
  Tensor summaries;  // [segments, HV, V + K, K]
  Tensor entry;      // [segments, HV, V, K]
};
// Summarise, gather, fold, run. Reads nothing but the routing's tensors; on any host transport.
RankAnswer run_rank(const StagedOp& op, const Span& span, const kernels::cp::Routing& routing,
                    kernels::cp::Transport& transport, bool taps, Fault fault = Fault::none);

// The outputs of the whole case from those of all ranks.
Tensors assemble(const Problem& whole, const kernels::cp::Plan& plan, const std::vector<RankAnswer>& ranks);

// Every rank in this process. The caps may be larger than the plan needs.
std::vector<RankAnswer> run_ranks(const StagedOp& op, const Problem& whole, const Tensors& inputs,
                                  const kernels::cp::Plan& plan, const kernels::cp::Caps& caps, bool taps,
                                  Fault fault = Fault::none);

// Without ranks or maps: the plan's segments one after the other, each from the state that the one before it ended in. What
// the op gives when its chunks begin where the plan's do.
Tensors run_chained(const StagedOp& op, const Problem& whole, const Tensors& inputs, const kernels::cp::Plan& plan);

// The documents of a case as a plan wants them.
std::vector<std::int64_t> documents_of(const Problem& whole);
// A plan that owns the first token after a cut inside a document twice; unchanged when there is no such cut.
kernels::cp::Plan with_boundary_token_twice(kernels::cp::Plan plan);

}  // namespace deltagauge::validate::cp
