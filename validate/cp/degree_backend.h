// DegreeBackend: a staged op as a backend, at one degree of context parallelism. Documents are not cut, so the bits must be
// those of the op as it is without ranks (docs/cp.md).
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "validate/cp/staged_op.h"
#include "validate/ladder/promises.h"

namespace deltagauge::validate::cp {

class DegreeBackend : public Backend {
 public:
  // degree: ranks, at least 1. One that gets no document has nothing to do. Plans give outputs and no intermediates.
  DegreeBackend(std::string name, std::shared_ptr<const StagedOp> op, std::int64_t degree, Fault fault = Fault::none);
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return summary_; }
  std::optional<std::string> unsupported(const Problem& problem) const override { return op_->unsupported(problem); }
  std::string_view staging(const Problem&) const override { return op_->staging(); }
  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override;

 private:
  std::string name_, summary_;
  std::shared_ptr<const StagedOp> op_;
  std::int64_t degree_;
  Fault fault_;
};

// What the backend of that name offers as its degrees: "NAME.cp1", "NAME.cp2", "NAME.cp3"; nothing where op is null.
Backends degrees_of(std::string_view name, std::shared_ptr<const StagedOp> op);

}  // namespace deltagauge::validate::cp
