#include "bench/gate.h"

#include <cmath>
#include <exception>
#include <string>
#include <utility>

#include "core/op.h"
#include "validate/checks/accuracy.h"
#include "validate/mark.h"
#include "validate/rows.h"

namespace deltagauge::bench {
namespace {

using validate::Verdict;

// Keeps the worse of two metrics of one tensor, and counts what is not finite over both.
void keep_worse(reports::TensorMetrics& kept, const reports::TensorMetrics& other) {
  const std::int64_t non_finite = kept.non_finite + other.non_finite;
  const double rel_l2 = reports::worse(other.rel_l2, kept.rel_l2) ? other.rel_l2 : kept.rel_l2;
  if (reports::worse(other.row_ratio, kept.row_ratio)) kept = other;
  kept.non_finite = non_finite;
  kept.rel_l2 = rel_l2;
}

// Of the rows that are judged: past the active end and in slots of no sequence may stand anything.
void expect_finite(const Problem& problem, std::string_view name, const Tensor& tensor, Verdict& verdict) {
  const validate::Rows rows = validate::rows_of(problem, name, tensor.shape());
  std::int64_t bad = 0;
#pragma omp parallel for reduction(+ : bad)
  for (const validate::Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t first = (s.first + i * s.stride) * rows.width;
      for (std::int64_t j = first; j < first + rows.width; ++j) bad += !std::isfinite(tensor.load(j));
    }
  if (bad) verdict.add_failure(std::string(name) + ": expected finite values, got " + std::to_string(bad) + " that are not");
}

}  // namespace

Gate::Gate(const SweepCase& test, const Tensors& inputs, oracle::Precision precision, std::int64_t token_heads)
    : problem_(test.test.problem) {
  for (const validate::Part& part : validate::choose_parts(problem_, test.test.seed, token_heads)) {
    Judged& one = judged_.emplace_back();
    one.part = part;
    one.test.test.problem = validate::part_problem(problem_, part);
  }
  for (Judged& one : judged_)  // the contexts point at the tests, which have their places now
    one.context =
        std::make_unique<validate::Context>(one.test, validate::part_inputs(problem_, one.part, inputs), precision);
}

Verdict Gate::judge(std::string_view staging, const Tensors& outputs) {
  const validate::Mark mark("judge");
  const validate::Recording none(false);  // of the parts: this thread's are no more than some of them
  std::vector<Verdict> verdicts(judged_.size());
  std::vector<std::exception_ptr> errors(judged_.size());
#pragma omp parallel for schedule(dynamic, 1)
  for (std::size_t i = 0; i < judged_.size(); ++i) {
    try {
      verdicts[i] =
          validate::judge_outputs(*judged_[i].context, staging, validate::part_outputs(problem_, judged_[i].part, outputs));
    } catch (...) {
      errors[i] = std::current_exception();
    }
  }
  for (const auto& error : errors)
    if (error) std::rethrow_exception(error);
  Verdict verdict;
  for (std::size_t i = 0; i < verdicts.size(); ++i) {
    verdict.compared += verdicts[i].compared;
    for (auto& [name, metrics] : verdicts[i].tensors) {
      metrics.map.reset();  // of a part only
      if (metrics.worst) metrics.worst->index = validate::whole_index(problem_, judged_[i].part, name, metrics.worst->index);
      const auto [at, is_new] = verdict.tensors.emplace(name, metrics);
      if (!is_new) keep_worse(at->second, metrics);
    }
    if (verdicts[i].outcome != reports::Outcome::pass)
      verdict.add_failure("sequence " + std::to_string(judged_[i].part.sequence) + ", head " +
                          std::to_string(judged_[i].part.head) + " alone: " + verdicts[i].reason);
  }
  for (const TensorSpec& spec : op_info(problem_.op).outputs(problem_))
    expect_finite(problem_, spec.name, get(outputs, spec.name), verdict);
  return validate::unless_empty(std::move(verdict));
}

}  // namespace deltagauge::bench
