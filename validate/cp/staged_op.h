// StagedOp: an op cut in two at the exchange of states, as one rank runs it (docs/cp.md). The reference emulates it on the
// CPU; a CUDA op uploads in prepare() and downloads in summarise() and run(), and reads the same routing.
#pragma once
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/cp.h"

namespace deltagauge::validate::cp {

using reference::RowRange;

// One rank's span, ready for the exchange.
class Prepared {
 public:
  virtual ~Prepared() = default;
  virtual DType state_dtype() const = 0;                                 // of summaries and of states between segments
  virtual Tensor summarise(std::span<const RowRange> ranges) const = 0;  // [R, HV, V + K, K] = [bias; transition]
  // entry [N, HV, V, K] -> o and final_state [N, HV, V, K] in state_dtype; with taps also Ainv and v_new where it has them.
  virtual Tensors run(const Tensor& entry, bool taps) const = 0;
};

class StagedOp {
 public:
  virtual ~StagedOp() = default;
  virtual std::string_view name() const = 0;     // "reference.cp.chunk_sm80.plain"
  virtual std::string_view staging() const = 0;  // the budget comes from it (reference/staging.h)
  virtual std::optional<std::string> unsupported(const Problem& problem) const = 0;
  virtual Tensors whole(const Problem& problem, const Tensors& inputs) const = 0;  // the op as it is without ranks
  virtual std::unique_ptr<Prepared> prepare(const Problem& span, const Tensors& inputs) const = 0;
};

using StagedOps = std::vector<std::unique_ptr<StagedOp>>;
// reference.cp.STAGING for every staging of gdn that works in chunks of 64.
StagedOps reference_ops();

}  // namespace deltagauge::validate::cp
