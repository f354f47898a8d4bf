#include "validate/ladder/trial.h"

#include "validate/checks/check.h"

namespace deltagauge::validate {

Trial::Trial(const Context& context, const Backend& backend, const PlanOptions& options)
    : backend_(backend),
      problem_(context.tap_problem(backend.staging(context.problem()))),
      inputs_(context.inputs()),
      options_(options) {}

Plan& Trial::plan() {
  if (!plan_) plan_ = planned(backend_, problem_, inputs_, options_);
  return *plan_;
}

const Tiles& Trial::base() {
  if (!base_) {
    run_plan(plan());
    base_.emplace(problem_, plan().outputs());
  }
  return *base_;
}

bool Trial::expect_same(const Tensors& answer, std::string_view what) {
  return expect_same_tiles(base(), Tiles(problem_, answer), whole_sequences(problem_), what, verdict_);
}

bool Trial::expect_same(const Problem& problem, const Pieces& pieces, const Tensors& inputs, std::string_view what,
                        Tensors* answer) {
  if (!supported(backend_, problem, what)) return false;
  const Tiles tiles(problem, outputs_of(backend_, problem, inputs, options_));
  if (answer) *answer = tiles.answer();
  return expect_same_tiles(base(), tiles, pieces, what, verdict_);
}

bool Trial::expect_same(const Backend& other, std::string_view what) {
  return supported(other, problem_, what) && expect_same(outputs_of(other, problem_, inputs_, options_), what);
}

bool Trial::supported(const Backend& backend, const Problem& problem, std::string_view what) {
  const auto why = backend.unsupported(problem);
  if (why && verdict_.outcome != reports::Outcome::fail) verdict_ = skip(std::string(what) + ": not supported: " + *why);
  return !why;
}

Verdict Trial::verdict() const { return unless_empty(verdict_); }

Verdict repeat(Trial& trial) {
  constexpr int kRepeats = 3;
  trial.base();
  bool same = true;
  for (int run = 2; run <= kRepeats && same; ++run) {
    run_plan(trial.plan());
    same = trial.expect_same(trial.plan().outputs(), "run " + std::to_string(run) + " of one plan");
  }
  const auto again = [&](const PlanOptions& options, std::string_view what) {
    same = same && trial.expect_same(outputs_of(trial.backend(), trial.problem(), trial.inputs(), options), what);
  };
  again(trial.options(), "a second plan");
  if (trial.options().taps) again({.fill = trial.options().fill}, "a plan without intermediates");
  return trial.verdict();
}

Verdict each_separate(Trial& trial) {
  const Problem& problem = trial.problem();
  if (problem.sequences() < 2) return skip("one sequence: nothing to compare");
  for (std::int64_t n = 0; n < problem.sequences(); ++n) {
    const Pieces alone{whole_sequence(problem, n)};
    const Problem one = pieces_problem(problem, alone);
    if (!trial.expect_same(one, alone, pieces_inputs(problem, alone, one, trial.inputs()),
                           "sequence " + std::to_string(n) + " alone"))
      break;
  }
  return trial.verdict();
}

}  // namespace deltagauge::validate
