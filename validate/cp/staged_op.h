// StagedOp: an op cut in two at the exchange of states, as ranks run it (docs/cp.md). The reference emulates it on the CPU,
// a CUDA op runs kernels; both read the same routing.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"
#include "kernels/cp/routing.h"
#include "kernels/cp/transport.h"
#include "reference/staging.h"

namespace deltagauge::validate::cp {

// Single slips of the recipe, to show that the check sees them. Of the reference only.
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

struct RankAnswer {
  Tensors run;       // o [rows, HV, V], final_state [segments, HV, V, K], taps
  Tensor summaries;  // [segments, HV, V + K, K]
  Tensor entry;      // [segments, HV, V, K]
};

// All ranks of a plan, by rank; same caps.
struct Ranks {
  std::vector<Span> spans;
  std::vector<kernels::cp::Routing> routings;
  std::size_t world() const { return spans.size(); }
};

// The calls of all ranks in one CUDA graph.
class Captured {
 public:
  virtual ~Captured() = default;
  virtual std::vector<RankAnswer> replay(const Ranks& ranks) = 0;  // of the captured world, caps and op; other contents
};

class StagedOp {
 public:
  virtual ~StagedOp() = default;
  virtual std::string_view name() const = 0;     // "reference.cp.chunk_sm80.plain"
  virtual std::string_view staging() const = 0;  // the budget comes from it (reference/staging.h)
  virtual std::optional<std::string> unsupported(const Problem& problem) const = 0;
  virtual Tensors whole(const Problem& problem, const Tensors& inputs) const = 0;  // the op as it is without ranks
  // Summarise, gather, fold, run: one rank, which reads nothing but the routing's tensors. With taps also Ainv and v_new.
  virtual RankAnswer rank(const Span& span, const kernels::cp::Routing& routing, kernels::cp::Transport& transport,
                          bool taps) const = 0;
  // Every rank, in this process.
  virtual std::vector<RankAnswer> ranks(const Ranks& ranks, bool taps, Fault fault = Fault::none) const = 0;
  // Null where there is no graph to capture.
  virtual std::unique_ptr<Captured> capture(const Ranks& /*first*/) const { return nullptr; }
};

// Why no staged op takes the problem, or nothing: another op or direction, a state pool.
std::optional<std::string> not_staged(const Problem& problem);

// reference.cp.STAGING of an entry of reference::stagings(), cuda.cp.VARIANT of an entry of gdn::variants(); null where it
// is not of gdn in chunks of 64. A cuda op is there in any build; it needs the CUDA half and a GPU.
std::unique_ptr<StagedOp> reference_op(const reference::Staging& staging);
std::unique_ptr<StagedOp> cuda_op(std::string_view variant);

using StagedOps = std::vector<std::unique_ptr<StagedOp>>;
// Those of every staging, of every variant.
void add_reference_ops(StagedOps& ops);
void add_cuda_ops(StagedOps& ops);
StagedOps all_ops();  // both

}  // namespace deltagauge::validate::cp
