// Planted faults of memory and order, for the selftest: a right answer spoiled after the run, in the arena that holds it.
// The numerical faults are in reference/faults.h.
#pragma once
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "core/backend.h"
#include "reference/staging.h"

namespace deltagauge::validate {

struct MemoryFault {
  std::string_view name, summary, check;                         // check: the one that must catch it
  bool (*shows)(const Problem& problem);                         // where false, the fault has no place to show
  void (*spoil)(const Problem& problem, Arena& arena, int run);  // after the run-th run (1, 2, ..) of a plan
};
std::span<const MemoryFault> memory_faults();

// A backend that answers with `answer`, claims `staging` and is spoiled by `fault` (nullptr: not at all).
class PlantedBackend : public Backend {
 public:
  using Answer = std::function<Tensors(const Problem&, const Tensors& inputs, bool taps)>;

  PlantedBackend(std::string name, std::string staging, Answer answer, const MemoryFault* fault = nullptr)
      : name_(std::move(name)), staging_(std::move(staging)), answer_(std::move(answer)), fault_(fault) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return fault_ ? fault_->summary : "nothing is planted"; }
  std::optional<std::string> unsupported(const Problem&) const override { return {}; }
  std::string_view staging(const Problem&) const override { return staging_; }
  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override;

 private:
  std::string name_, staging_;
  Answer answer_;
  const MemoryFault* fault_;
};

}  // namespace deltagauge::validate
