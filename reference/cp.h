// Context parallelism for the forward of gdn on the CPU: what one rank computes on its span (docs/cp.md). A token multiplies
// the state from the right and adds to it, so a run of tokens is one affine map S_out = S_in A + B, packed as
// [HV, V + K, K] = [bias B; transition A] (a summary). It is the same chunk form over V + K value rows: v padded with K
// zeros, started from [0; I], ends in [B; A]. Summaries and the states between segments are f32, or f64 when the staging
// sums in f64.
#pragma once
#include <cstdint>
#include <span>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/staging.h"

namespace deltagauge::reference {

// Rows [first, end) of a span.
struct RowRange {
  std::int64_t first = 0, end = 0;
};

class CpPrepared {
 public:
  // span: the sequences of this problem are the rank's segments. inputs: its tokens' and heads' tensors; entry states come
  // later.
  CpPrepared(const Problem& span, const Tensors& inputs, const Staging& staging);

  DType state_dtype() const;  // of summaries and states: f32 or f64
  // [R, HV, V + K, K], one map a range. A range lies within a segment and starts a whole number of chunks after its start;
  // an empty one gives the identity.
  Tensor summarise(std::span<const RowRange> ranges) const;
  // entry [N, HV, V, K] -> o, final_state [N, HV, V, K] in state_dtype, and with taps what gdn_staged gives.
  Tensors run(const Tensor& entry, bool taps) const;

 private:
  Problem span_;
  Tensors inputs_;
  Staging staging_;
};

// states[to] = states[from] A + B of summaries[map], every head. states [N, HV, V, K], summaries [R, HV, V + K, K], one
// dtype. Each element is summed from B on, by ascending column of the state, each step a fused multiply-add.
void merge_state(Tensor& states, std::int64_t to, std::int64_t from, const Tensor& summaries, std::int64_t map);
// states[to] = B of summaries[map].
void copy_bias(Tensor& states, std::int64_t to, const Tensor& summaries, std::int64_t map);
// B of summaries[map] = states[from] A + B: the map of a document's first segment with its initial state in it, so that a
// fold may start from the bias alone.
void merge_bias(Tensor& summaries, std::int64_t map, const Tensor& states, std::int64_t from);

}  // namespace deltagauge::reference
