#include "validate/checks/check.h"

#include <vector>

#include "core/error.h"
#include "core/op.h"
#include "validate/checks/accuracy.h"
#include "validate/checks/causal.h"
#include "validate/checks/determinism.h"
#include "validate/checks/fast.h"
#include "validate/checks/guard.h"
#include "validate/checks/ladder.h"
#include "validate/checks/lattice.h"
#include "validate/checks/packing.h"
#include "validate/checks/stages.h"
#include "validate/mark.h"

namespace deltagauge::validate {

std::span<const Check* const> all_checks() {
  static const Accuracy accuracy;
  static const Stages stages;
  static const Lattice lattice;
  static const Guard guard;
  static const Determinism determinism;
  static const Packing packing;
  static const Causal causal;
  static const Fast fast;
  static const std::vector<Ladder> ladder(rungs().begin(), rungs().end());
  static const std::vector<const Check*> all = [] {
    std::vector<const Check*> list{&accuracy, &stages, &lattice, &guard, &determinism, &packing, &causal, &fast};
    for (const Ladder& rung : ladder) list.push_back(&rung);
    return list;
  }();
  return all;
}

std::span<const CheckInfo> checks() {
  static const std::vector<CheckInfo> infos = [] {
    std::vector<CheckInfo> list;
    for (const Check* check : all_checks()) list.push_back(check->info());
    return list;
  }();
  return infos;
}

bool names_check(std::string_view wanted, std::string_view check) {
  return check == wanted || (check.starts_with(wanted) && check.substr(wanted.size()).starts_with('.'));
}

std::vector<const Check*> find_checks(std::string_view wanted) {
  std::vector<const Check*> found;
  std::string known;
  for (const Check* check : all_checks()) {
    if (names_check(wanted, check->info().name)) found.push_back(check);
    known += " " + std::string(check->info().name);
  }
  if (found.empty()) fail("check: expected one of", known, ", got '", wanted, "'");
  return found;
}

const Check& find_check(std::string_view name) {
  const auto found = find_checks(name);
  if (found.size() > 1) fail("check: expected one, got '", name, "', which means ", found.size());
  return *found[0];
}

std::unique_ptr<Plan> planned(const Backend& backend, const Problem& problem, const Tensors& inputs,
                              const PlanOptions& options) {
  const Mark mark("plan");
  return backend.plan(problem, inputs, options);
}

void run_plan(Plan& plan) {
  const Mark mark("run");
  plan.run();
}

Tensors outputs_of(const Backend& backend, const Problem& problem, const Tensors& inputs, const PlanOptions& options) {
  const auto plan = planned(backend, problem, inputs, options);
  run_plan(*plan);
  return plan->outputs();
}

void expect_same_bits(const Problem& problem, const Tensors& got, const Tensors& want, std::string_view where,
                      Verdict& verdict) {
  const Mark mark("compare");
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) {
    const Tensor &a = get(got, spec.name), &b = get(want, spec.name);
    const Rows rows = rows_of(problem, spec.name, b.shape());
    verdict.compared += elements_of(rows);
    const std::string why = bit_mismatch(problem, spec.name, a, b, rows);
    if (!why.empty()) verdict.add_failure(spec.name + (where.empty() ? "" : " " + std::string(where)) + ": " + why);
  }
}

}  // namespace deltagauge::validate
