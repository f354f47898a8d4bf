// A staged op over ranks: spans out of global tensors, one rank's call around one all-gather, global tensors out of spans.
#pragma once
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"
#include "kernels/cp/plan.h"
#include "kernels/cp/routing.h"
#include "kernels/cp/transport.h"
#include "reference/staging.h"
#include "validate/cp/staged_op.h"

namespace deltagauge::validate::cp {

Span span_of(const Problem& whole, const Tensors& inputs, const kernels::cp::RankPlan& rank, const kernels::cp::Caps& caps);

Ranks ranks_of(const Problem& whole, const Tensors& inputs, const kernels::cp::Plan& plan, const kernels::cp::Caps& caps);

// Summarise, gather, fold, run, by the reference on any host transport.
RankAnswer run_rank(const reference::Staging& staging, const Span& span, const kernels::cp::Routing& routing,
                    kernels::cp::Transport& transport, bool taps, Fault fault = Fault::none);

// The outputs of the whole case from those of all ranks.
Tensors assemble(const Problem& whole, const kernels::cp::Plan& plan, const std::vector<RankAnswer>& ranks);

// Every rank in this process. The caps may be larger than the plan needs.
std::vector<RankAnswer> run_ranks(const StagedOp& op, const Problem& whole, const Tensors& inputs,
                                  const kernels::cp::Plan& plan, const kernels::cp::Caps& caps, bool taps,
                                  Fault fault = Fault::none);

// By the reference, without ranks or maps: the plan's segments one after the other, each from the state that the one before
// it ended in. What the op gives when its chunks begin where the plan's do.
Tensors run_chained(const reference::Staging& staging, const Problem& whole, const Tensors& inputs,
                    const kernels::cp::Plan& plan);

// The documents of a case as a plan wants them.
std::vector<std::int64_t> documents_of(const Problem& whole);
// A plan that owns the first token after a cut inside a document twice; unchanged when there is no such cut.
kernels::cp::Plan with_boundary_token_twice(kernels::cp::Plan plan);

}  // namespace deltagauge::validate::cp
