#include "validate/cp/degree_backend.h"

#include <utility>

#include "core/error.h"
#include "kernels/cp/tables.h"
#include "validate/backends/arena_plan.h"
#include "validate/cp/sharded.h"

namespace deltagauge::validate::cp {

DegreeBackend::DegreeBackend(std::string name, std::shared_ptr<const StagedOp> op, std::int64_t degree, Fault fault)
    : name_(std::move(name)),
      summary_("whole documents over " + std::to_string(degree) + (degree == 1 ? " rank" : " ranks")),
      op_(std::move(op)),
      degree_(degree),
      fault_(fault) {}

std::unique_ptr<Plan> DegreeBackend::plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const {
  if (const auto reason = unsupported(problem)) fail(name_, ": ", *reason);
  const auto documents = documents_of(problem);
  const auto table = kernels::cp::make_table("documents", {.cu_seqlens = documents, .world = degree_});
  const kernels::cp::Plan shares = kernels::cp::plan(documents, table, 0);
  return std::make_unique<ArenaPlan>(
      problem, inputs, options, [problem, shares, op = op_, fault = fault_](const Tensors& from_arena) {
        return assemble(problem, shares,
                        run_ranks(*op, problem, from_arena, shares, kernels::cp::caps_of(shares), false, fault));
      });
}

Backends degrees_of(std::string_view name, std::shared_ptr<const StagedOp> op) {
  Backends degrees;
  if (!op) return degrees;
  for (const std::int64_t degree : {1, 2, 3})
    degrees.push_back(std::make_unique<DegreeBackend>(std::string(name) + ".cp" + std::to_string(degree), op, degree));
  return degrees;
}

}  // namespace deltagauge::validate::cp
