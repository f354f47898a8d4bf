// A plan as tensors of fixed shape (docs/cp.md#routing): all that a rank's calls read, so that a captured graph follows
// another layout once its routing was copied over the captured one. All int32. Shapes depend on the caps and the world only.
#pragma once
#include <cstdint>

#include "core/tensor.h"
#include "kernels/cp/plan.h"

namespace deltagauge::kernels::cp {

// What no layout may exceed, on any rank.
struct Caps {
  std::int64_t segments = 0, fragments = 0, slots = 0;
  std::int64_t rows = 0;     // of a span
  std::int64_t history = 0;  // rows of the short convolution before its own, W - 1; 0: no halo
};
Caps caps_of(const Plan& plan, std::int64_t history = 0);  // the least that hold the plan
Caps widest(const Caps& a, const Caps& b);                 // the least that hold what either does

// Of one direction. Numbers past the last of their kind stand for nothing: a segment `segments`, a slot `world * slots`.
struct FlowRouting {
  Tensor published;  // [slots] the segment behind each slot
  Tensor source;     // [segments] a fragment: fold its row of `fold`; `fragments`: the document's own edge; `fragments` + 1:
                     // one step on from the segment before (forward) or after (reverse) it in the span
  Tensor fold;       // [fragments, world * slots] rank * slots + slot, in the order of the fold
};

struct Routing {
  Caps caps;
  std::int64_t rank = 0, world = 1;
  Tensor cu_seqlens;  // [segments + 1], padded with the span's end
  Tensor document;    // [segments] global document; -1: padding
  Tensor terminal;    // [segments] 1: the exit state is its document's final state
  FlowRouting forward, reverse;
  // The short convolution. Each fragment publishes its last rows; a segment that does not follow its forerunner in the span
  // finds the history before it there.
  Tensor tails;    // [fragments, history] span row, or `rows`: nothing, a row of zeros
  Tensor history;  // [segments, history] (rank * fragments + fragment) * history + place; world * fragments * history:
                   // zeros. Padding and segments that follow on in the span: zeros, for the convolution runs through
};

// Throws Error when the plan passes a cap.
Routing routing(const Plan& plan, std::int64_t rank, const Caps& caps);

}  // namespace deltagauge::kernels::cp
