#include "validate/replay/walk.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <map>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "validate/checks/check.h"
#include "validate/ladder/promises.h"
#include "validate/mark.h"
#include "validate/metrics.h"
#include "validate/replay/layout.h"
#include "validate/rows.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;
using Clock = std::chrono::steady_clock;

// What a replay left in outputs that are no rows of this layout, first in words; empty when nothing.
std::string written_elsewhere(const Problem& layout, const TensorSpec& spec, const std::vector<bool>& untouched) {
  const Rows rows = rows_of(layout, spec.name, spec.shape);
  std::vector<bool> own(untouched.size(), false);
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const auto at = own.begin() + (s.first + i * s.stride) * rows.width;
      std::fill(at, at + rows.width, true);
    }
  std::int64_t count = 0, first = 0;
  for (std::size_t i = own.size(); i-- > 0;)
    if (!own[i] && !untouched[i]) ++count, first = static_cast<std::int64_t>(i);
  if (!count) return {};
  return spec.name + ": " + std::to_string(count) + " elements that are no part of the layout were written, the first at " +
         place(layout, spec.name, spec.shape, first);
}

// What all that walk beside each other share at a step: the layout, its inputs, drawn on a thread of their own, and the
// eager call on them, which is made when first asked for.
class Step {
 public:
  explicit Step(const Case& test)
      : layout_(test.problem), drawn_(std::async(std::launch::async, [test] { return make_inputs(test); })) {}
  const Problem& layout() const { return layout_; }
  const Tensors& inputs() const {
    const Mark mark("inputs");
    return drawn_.get();
  }
  const Tensors& eager(const Backend& backend) {
    if (!eager_) eager_ = outputs_of(backend, layout_, drawn_.get());
    return *eager_;
  }

 private:
  Problem layout_;
  std::shared_future<Tensors> drawn_;
  std::optional<Tensors> eager_;
};

// A replay against a call on fresh memory; the first difference of each output in words.
Verdict judge(const Backend& eager, Step& step, const Replayable& replay) {
  const Mark mark("judge");
  Verdict verdict;
  const Problem& layout = step.layout();
  expect_same_bits(layout, replay.outputs(), step.eager(eager), "against an eager call", verdict);
  for (const TensorSpec& spec : op_info(layout.op).outputs(layout))
    if (const auto why = written_elsewhere(layout, spec, replay.untouched(spec.name)); !why.empty())
      verdict.add_failure(why);
  for (const std::string& damage : replay.audit()) verdict.add_failure(damage);
  return verdict;
}

void expect_no_more(const Replayable::Counts& before, const Replayable::Counts& after, Verdict& verdict) {
  const auto expect_none = [&](const char* what, std::int64_t got) {
    if (got) verdict.add_failure("expected no " + std::string(what) + " inside, got " + std::to_string(got));
  };
  expect_none("allocation", after.allocations - before.allocations);
  expect_none("synchronisation with the host", after.synchronisations - before.synchronisations);
}

// The layouts of a walk at a capacity, by step, and which of them are taken.
class Route {
 public:
  Route(const Case& base, const ReplayOptions& options)
      : base_(base), seed_(options.walk), classes_(walk(options.walk)), last_(options.step.value_or(classes_.size() - 1)) {
    if (last_ >= classes_.size()) fail("--step: expected one in [0, ", classes_.size() - 1, "], got ", last_);
    if (options.step && last_) first_ = last_ - 1;
  }
  std::size_t first() const { return first_; }
  std::size_t last() const { return last_; }
  std::pair<LayoutClass, LayoutClass> transition(std::size_t step) const { return {classes_[step - 1], classes_[step]}; }
  // The layout of a step, with inputs of its own.
  Case at(std::size_t step) const {
    return {layout_of(base_.problem, classes_[step], seed_ * 1000003 + step), base_.seed + step, {}};
  }
  std::string named(std::size_t step) const {
    return std::string(name(classes_[step])) + (step ? " after " + std::string(name(classes_[step - 1])) : "");
  }
  std::string which(std::size_t step, const Problem& layout) const {
    return "replay " + std::to_string(step) + " (" + named(step) + "; " + in_words(layout) + ")";
  }

 private:
  const Case& base_;
  std::uint64_t seed_;
  std::vector<LayoutClass> classes_;
  std::size_t first_ = 0, last_;
};

// What the steps of a walk have reached.
class Coverage {
 public:
  void add(const Route& route, std::size_t step, const Problem& layout) {
    ++replays_;
    if (step > route.first()) {
      pairs_.insert(route.transition(step));
      grew_ += layout.tokens() > before_;
      shrank_ += layout.tokens() < before_;
    }
    before_ = layout.tokens();
    const auto slots = layout.state_indices();
    const auto has = layout.has_initial_state();
    holes_ += std::any_of(slots.begin(), slots.end(), [](std::int64_t slot) { return slot <= 0; });
    unread_ += std::find(has.begin(), has.end(), false) != has.end();
  }
  std::map<std::string, double> values(const Problem& capacity) const {
    std::map<std::string, double> values{
        {"replays", replays_},
        {"transitions", static_cast<double>(pairs_.size())},
        {"transitions_possible", static_cast<double>(layout_classes().size() * layout_classes().size())},
        {"grew", grew_},
        {"shrank", shrank_}};
    if (capacity.slots) {
      values["with_sequences_without_slot"] = holes_;
      values["with_slots_unread"] = unread_;
    }
    return values;
  }

 private:
  std::set<std::pair<LayoutClass, LayoutClass>> pairs_;
  double replays_ = 0, grew_ = 0, shrank_ = 0, holes_ = 0, unread_ = 0;
  std::int64_t before_ = 0;
};

// The capture, on the layout of the walk's first step, which is drawn when first asked for; or why there is none.
Walked begun(const ReplayJob& job, const Route& route, std::optional<Step>& full, const ReplayOptions& options) {
  Walked out{job, nullptr, row_of(job, "replay")};
  work_on(out.row, options, [&] {
    const Problem& capacity = job.test->test.problem;
    auto why = job.backend->unsupported(capacity);
    const bool no_gpu = why && why->starts_with("no GPU");
    if (!why && !job.test->test.overrides.empty()) why = "overrides: expected none, since layouts move what they name";
    if (!why) why = no_layouts(capacity);
    if (why) {
      out.row.outcome = no_gpu && options.cuda_missing_is_failure ? Outcome::fail : Outcome::skip;
      out.row.reason = *why;
      return;
    }
    if (!full) full.emplace(route.at(0));
    const Tensors& inputs = full->inputs();
    const Mark mark("capture");
    out.replay = options.capture(*job.backend, full->layout(), inputs);
  });
  return out;
}

void take(Walked& one, const Route& route, std::size_t number, Step& step, const ReplayOptions& options) {
  Mark mark("replay");
  if (auto* span = mark.span()) {
    span->active_tokens = active_tokens(step.layout());
    span->detail = route.named(number) + "; " + in_words(step.layout());
  }
  const Tensors& inputs = step.inputs();
  const std::optional<Replayable::Counts> before = one.replay->counts();
  load(*one.replay, inputs);
  one.replay->replay();
  Verdict verdict = judge(*one.job.eager, step, *one.replay);
  if (before) expect_no_more(*before, *one.replay->counts(), verdict);
  if (verdict.outcome == Outcome::pass) return;
  if (auto* span = mark.span()) span->reason = verdict.reason;
  if (one.failed++) return;
  one.row.reason = route.which(number, step.layout()) + ": " + verdict.reason;
  one.row.repro = repro_of(one.job, options, number);
}

// What a walk that has ended says beside its reason.
void end(Walked& one, const Coverage& coverage) {
  Result& row = one.row;
  row.values = coverage.values(one.job.test->test.problem);
  row.values["replays_failed"] = static_cast<double>(one.failed);
  if (const auto counts = one.replay->counts()) {
    row.values["allocations"] = static_cast<double>(counts->allocations);
    row.values["synchronisations"] = static_cast<double>(counts->synchronisations);
  }
  if (!one.failed) return;
  row.outcome = Outcome::fail;
  if (one.failed > 1)
    row.reason +=
        "; " + std::to_string(one.failed) + " of " + std::to_string(std::llround(row.values["replays"])) + " replays differ";
}

}  // namespace

Result row_of(const ReplayJob& job, std::string_view check) {
  Result row = row_before(*job.test, job.backend->name(), check);
  row.outcome = Outcome::pass;
  return row;
}

std::string repro_of(const ReplayJob& job, const ReplayOptions& options, std::optional<std::size_t> step) {
  return "deltagauge replay --case " + shell_quoted(to_id(job.test->test)) + " --backend " + std::string(job.eager->name()) +
         " --walk " + std::to_string(options.walk) + (step ? " --step " + std::to_string(*step) : "");
}

void work_on(Result& row, const ReplayOptions& options, const std::function<void()>& work) {
  const auto start = Clock::now();
  Recording recording(options.spans);
  try {
    work();
  } catch (const std::exception& error) {
    row.outcome = Outcome::error;
    row.reason = error.what();
  }
  for (reports::Span& span : recording.take()) {
    span.start += row.seconds;
    row.spans.push_back(std::move(span));
  }
  row.seconds += std::chrono::duration<double>(Clock::now() - start).count();
}

void load(Replayable& replay, const Tensors& inputs) {
  const Mark mark("load");
  replay.load(inputs);
}

std::vector<Walked> walked(const ReplayJob& job, const ReplayOptions& options) {
  const Route route(job.test->test, options);
  std::optional<Step> now, next;
  std::vector<Walked> all;
  all.push_back(begun(job, route, now, options));
  const Promises* promises = promises_of(*job.backend);
  if (promises && all[0].replay)
    for (const Backend* schedule : promises->schedules())
      all.push_back(begun({job.test, schedule, job.backend}, route, now, options));
  if (route.first()) now.reset();
  Coverage coverage;
  for (std::size_t step = route.first(); step <= route.last(); ++step, now = std::exchange(next, {})) {
    for (Walked& one : all) {
      if (!one.goes_on()) continue;
      work_on(one.row, options, [&] {
        if (!now) now.emplace(route.at(step));
        if (!next && step < route.last()) next.emplace(route.at(step + 1));
        take(one, route, step, *now, options);
      });
      if (one.goes_on() || !now) continue;
      one.row.reason = route.which(step, now->layout()) + ": " + one.row.reason;
      one.row.repro.clear();  // of a replay before that differed
    }
    if (now) coverage.add(route, step, now->layout());
  }
  for (Walked& one : all)
    if (one.goes_on()) end(one, coverage);
  return all;
}

}  // namespace deltagauge::validate
