#include "validate/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <future>
#include <iterator>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "validate/checks/check.h"
#include "validate/choice.h"
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

constexpr int kParts[] = {1, 2, 4, 16, 64};  // of the capacity one in so many is active, timed
constexpr int kSamples = 21;
constexpr double kSampleSeconds = 200e-6;
constexpr std::int64_t kMostCalls = 256;

struct Job {
  const SweepCase* test;
  const Backend* backend;
  const Backend* eager;  // whose calls the replays are held against: the backend itself, or the one it is a schedule of
};

std::vector<Job> jobs_of(const Sweep& sweep, const Registry& registry, const ReplayOptions& options) {
  const auto asked = registry.match(options.backend);
  std::vector<Job> jobs;
  for (const SweepCase& test : sweep.cases) {
    const std::string id = to_id(test.test);
    if (test.expect == "refused" || !(glob_match(options.filter, id) || glob_match(options.filter, test.name))) continue;
    for (const Backend* backend : registry.match(sweep.backend))
      if (std::find(asked.begin(), asked.end(), backend) != asked.end() && serves(*backend, test.test.problem))
        jobs.push_back({&test, backend, backend});
  }
  return jobs;
}

std::string name_of(const Job& job) { return to_id(job.test->test) + " " + std::string(job.backend->name()) + " replay"; }

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Result row_of(const Job& job, std::string_view check) {
  Result row = row_before(*job.test, job.backend->name(), check);
  row.outcome = Outcome::pass;
  return row;
}

// The command that shows a job's failure again. step: the replay of the walk that is enough.
std::string repro_of(const Job& job, const ReplayOptions& options, std::optional<std::size_t> step = {}) {
  return "deltagauge replay --case " + shell_quoted(to_id(job.test->test)) + " --backend " + std::string(job.eager->name()) +
         " --walk " + std::to_string(options.walk) + (step ? " --step " + std::to_string(*step) : "");
}

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

Tensors inputs_of(const Case& test) {
  const Mark mark("inputs");
  return make_inputs(test);
}

Tensors taken(std::future<Tensors>& drawn) {
  const Mark mark("inputs");
  return drawn.get();
}

void load(Replayable& replay, const Tensors& inputs) {
  const Mark mark("load");
  replay.load(inputs);
}

// A replay against a call on fresh memory; the first difference of each output in words.
Verdict judge(const Backend& backend, const Problem& layout, const Tensors& inputs, const Replayable& replay) {
  const Mark mark("judge");
  Verdict verdict;
  expect_same_bits(layout, replay.outputs(), outputs_of(backend, layout, inputs), "against an eager call", verdict);
  for (const TensorSpec& spec : op_info(layout.op).outputs(layout))
    if (const auto why = written_elsewhere(layout, spec, replay.untouched(spec.name)); !why.empty())
      verdict.add_failure(why);
  for (const std::string& damage : replay.audit()) verdict.add_failure(damage);
  return verdict;
}

class Walker {
 public:
  Walker(const Job& job, const ReplayOptions& options)
      : job_(job), options_(options), base_(job.test->test), classes_(walk(options.walk)) {}

  Result run(Replayable& replay) {
    Result row = row_of(job_, "replay");
    std::size_t first = 0, last = classes_.size() - 1;
    if (options_.step) {
      if (*options_.step > last) fail("--step: expected a replay in [0, ", last, "], got ", *options_.step);
      last = *options_.step;
      first = last ? last - 1 : 0;
    }
    std::set<std::pair<LayoutClass, LayoutClass>> pairs;
    double grew = 0, shrank = 0, failed = 0, holes = 0, unread = 0;
    std::int64_t before = 0;
    const auto draw = [this](std::size_t step) {
      return std::async(std::launch::async, [now = at(step)] { return make_inputs(now); });
    };
    std::future<Tensors> drawn = draw(first);  // of the next step, while this one is replayed
    for (std::size_t step = first; step <= last; ++step) {
      const Case now = at(step);
      const Problem& layout = now.problem;
      Mark mark("replay");
      if (auto* span = mark.span()) {
        span->active_tokens = active_tokens(layout);
        span->detail = named(step) + "; " + in_words(layout);
      }
      const Tensors inputs = taken(drawn);
      if (step < last) drawn = draw(step + 1);
      const std::optional<Replayable::Counts> earlier = replay.counts();
      load(replay, inputs);
      replay.replay();
      Verdict verdict = judge(*job_.eager, layout, inputs, replay);
      if (earlier) count(*earlier, *replay.counts(), verdict);
      if (step > first) {
        pairs.insert({classes_[step - 1], classes_[step]});
        grew += layout.tokens() > before;
        shrank += layout.tokens() < before;
      }
      before = layout.tokens();
      const auto slots = layout.state_indices();
      const auto has = layout.has_initial_state();
      holes += std::any_of(slots.begin(), slots.end(), [](std::int64_t slot) { return slot <= 0; });
      unread += std::find(has.begin(), has.end(), false) != has.end();
      if (verdict.outcome == Outcome::pass) continue;
      if (auto* span = mark.span()) span->reason = verdict.reason;
      if (!failed++) {
        row.reason =
            "replay " + std::to_string(step) + " (" + named(step) + "; " + in_words(layout) + "): " + verdict.reason;
        row.repro = repro_of(job_, options_, step);
      }
    }
    const auto replays = static_cast<double>(last - first + 1);
    if (failed) {
      row.outcome = Outcome::fail;
      if (failed > 1)
        row.reason +=
            "; " + std::to_string(std::llround(failed)) + " of " + std::to_string(last - first + 1) + " replays differ";
    }
    row.values = {{"replays", replays},
                  {"replays_failed", failed},
                  {"transitions", static_cast<double>(pairs.size())},
                  {"transitions_possible", static_cast<double>(layout_classes().size() * layout_classes().size())},
                  {"grew", grew},
                  {"shrank", shrank}};
    if (const auto counts = replay.counts()) {
      row.values["allocations"] = static_cast<double>(counts->allocations);
      row.values["synchronisations"] = static_cast<double>(counts->synchronisations);
    }
    if (base_.problem.slots) {
      row.values["with_sequences_without_slot"] = holes;
      row.values["with_slots_unread"] = unread;
    }
    return row;
  }

  // The layout of a step, with inputs of its own.
  Case at(std::size_t step) const {
    Case now;
    const std::uint64_t seed = options_.walk * 1000003 + step;
    now.problem = layout_of(base_.problem, classes_[step], seed);
    now.seed = base_.seed + step;
    return now;
  }

 private:
  std::string named(std::size_t step) const {
    return std::string(name(classes_[step])) + (step ? " after " + std::string(name(classes_[step - 1])) : "");
  }

  static void count(const Replayable::Counts& before, const Replayable::Counts& after, Verdict& verdict) {
    const auto expect_none = [&](const char* what, std::int64_t got) {
      if (got) verdict.add_failure("expected no " + std::string(what) + " inside, got " + std::to_string(got));
    };
    expect_none("allocation", after.allocations - before.allocations);
    expect_none("synchronisation with the host", after.synchronisations - before.synchronisations);
  }

  const Job& job_;
  const ReplayOptions& options_;
  const Case& base_;
  std::vector<LayoutClass> classes_;
};

reports::Timing timing_of(std::vector<double> samples, std::int64_t calls) {
  reports::Timing t;
  t.samples = samples;
  t.calls = calls;
  t.mean = std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
  std::sort(samples.begin(), samples.end());
  t.min = samples.front();
  t.median = samples[samples.size() / 2];
  t.p95 = samples[(samples.size() * 95 - 1) / 100];
  return t;
}

// The time of a replay on a layout, into a row; false where nothing keeps time.
bool keep_time(const Case& layout, const Tensors& inputs, Replayable& replay, Result& row) {
  load(replay, inputs);
  Mark mark("samples");
  if (auto* span = mark.span()) span->active_tokens = active_tokens(layout.problem);
  const auto once = replay.seconds(8);
  if (!once) return false;
  const auto calls = std::clamp<std::int64_t>(std::llround(std::ceil(kSampleSeconds / *once)), 1, kMostCalls);
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i) samples.push_back(*replay.seconds(calls));
  row.timing = timing_of(std::move(samples), calls);
  row.timing->active = static_cast<double>(active_tokens(layout.problem)) / static_cast<double>(most_active(layout.problem));
  row.timing->flops = op_info(layout.problem.op).flops(layout.problem);
  row.timing->bytes = op_info(layout.problem.op).bytes(layout.problem);
  return true;
}

std::unique_ptr<Replayable> capture(const ReplayOptions& options, const Backend& backend, const Case& first) {
  const Tensors inputs = inputs_of(first);
  const Mark mark("capture");
  return options.capture(backend, first.problem, inputs);
}

// One backend of a job over the walk.
struct Walked {
  Job job;
  std::unique_ptr<Replayable> replay;  // null where there was nothing to walk
  Result row;
};

Walked walked(const Job& job, const ReplayOptions& options) {
  const auto start = Clock::now();
  Walked out{job, nullptr, row_of(job, "replay")};
  Recording recording(options.spans);
  try {
    const Problem& capacity = job.test->test.problem;
    auto why = job.backend->unsupported(capacity);
    const bool no_gpu = why && why->starts_with("no GPU");
    if (!why && !job.test->test.overrides.empty()) why = "overrides: expected none, since layouts move what they name";
    if (!why) why = no_layouts(capacity);
    if (why) {
      out.row.outcome = no_gpu && options.cuda_missing_is_failure ? Outcome::fail : Outcome::skip;
      out.row.reason = *why;
    } else {
      Walker walker(job, options);
      const Case first = walker.at(0);  // full: what a capture would see
      out.replay = capture(options, *job.backend, first);
      out.row = walker.run(*out.replay);
    }
  } catch (const std::exception& error) {
    out.row.outcome = Outcome::error;
    out.row.reason = error.what();
  }
  if (out.row.repro.empty() && (out.row.outcome == Outcome::fail || out.row.outcome == Outcome::error))
    out.row.repro = repro_of(job, options, options.step);
  out.row.spans = recording.take();
  out.row.seconds = seconds_since(start);
  return out;
}

// A layout with part of the capacity active.
struct Part {
  std::string name;  // "1/16"
  Case layout;
};

// Parts of a small capacity may come to the same layout, which is one part then.
std::vector<Part> parts_of(const Case& test) {
  std::vector<Part> parts;
  for (const int one_in : kParts) {
    Problem p = active_layout(test.problem, 1.0 / one_in);
    if (parts.empty() || active_tokens(p) != active_tokens(parts.back().layout.problem))
      parts.push_back({"1/" + std::to_string(one_in), {std::move(p), test.seed, {}}});
  }
  return parts;
}

// A row of the job's case at that part. The part stands in the check, so that no other row is of the same.
Result row_of(const Job& job, const std::string& check, const Part& part) {
  Result row = row_of(job, check + part.name);
  const Problem& p = part.layout.problem;
  row.name = "active " + std::to_string(active_tokens(p)) + " of " + std::to_string(most_active(p));
  return row;
}

// Time rows of those whose walks passed; of those that nothing keeps time for, none.
std::vector<Result> time_rows(const std::vector<Walked>& all, const Part& part, const ReplayOptions& options) {
  std::optional<Tensors> inputs;
  std::vector<Result> rows;
  for (const Walked& one : all) {
    if (one.row.outcome != Outcome::pass) continue;
    const auto start = Clock::now();
    Recording recording(options.spans);
    Result row = row_of(one.job, "replay-time-", part);
    try {
      if (!inputs) inputs = inputs_of(part.layout);
      if (!keep_time(part.layout, *inputs, *one.replay, row)) continue;
    } catch (const std::exception& error) {
      row.outcome = Outcome::error;
      row.reason = error.what();
      row.repro = repro_of(one.job, options, 0);
    }
    row.spans = recording.take();
    row.seconds = seconds_since(start);
    rows.push_back(std::move(row));
  }
  return rows;
}

// A backend against its schedules at a part. all[0]: the backend; timed: rows of those that have a time, in that order.
Result choice_row(const std::vector<Walked>& all, const Part& part, const std::vector<Result>& timed,
                  const ReplayOptions& options) {
  Result row = row_of(all[0].job, "replay-choice-", part);
  for (const Walked& one : all) {
    const auto found = std::ranges::find(timed, one.job.backend->name(), &Result::backend);
    if (found != timed.end() && found->timing) continue;
    row.outcome = Outcome::skip;
    row.reason = "no time of " + std::string(one.job.backend->name()) + " to judge the choice by";
    return row;
  }
  const auto median = [](const Result& one) { return one.timing->median; };
  const Result &own = timed[0], &best = *std::ranges::min_element(timed.begin() + 1, timed.end(), {}, median);
  const double over = median(own) / median(best);
  row.values["over_best_schedule"] = over;
  if (over <= kMostOverBest) return row;
  const auto ns = [&](const Result& one) { return std::to_string(std::llround(1e9 * median(one))) + " ns"; };
  row.outcome = Outcome::fail;
  row.reason =
      "the schedule chosen: expected at most 5 % more than the " + ns(best) + " of " + best.backend + ", got " + ns(own);
  row.repro = repro_of(all[0].job, options, 0);
  return row;
}

// A backend and its schedules: their walks, then the times of those that passed, part by part, and the choice at each.
std::vector<Result> rows_of_job(const Job& job, const ReplayOptions& options) {
  std::vector<Walked> all;
  all.push_back(walked(job, options));
  const Promises* promises = promises_of(*job.backend);
  if (promises && all[0].replay)
    for (const Backend* schedule : promises->schedules()) all.push_back(walked({job.test, schedule, job.backend}, options));
  std::vector<Result> rows;
  for (const Walked& one : all) rows.push_back(one.row);
  if (!options.times) return rows;
  bool keeps_time = false;
  for (const Part& part : parts_of(job.test->test)) {
    std::vector<Result> timed = time_rows(all, part, options);
    keeps_time = keeps_time || !timed.empty();
    if (all.size() > 1 && keeps_time) timed.push_back(choice_row(all, part, timed, options));
    std::move(timed.begin(), timed.end(), std::back_inserter(rows));
  }
  return rows;
}

// What stands for a job whose process ended.
Result broken(const Job& job, const ReplayOptions& options) {
  Result row = row_before(*job.test, job.backend->name(), "replay");
  row.repro = repro_of(job, options, options.step);
  return row;
}

}  // namespace

std::int64_t last_step() { return static_cast<std::int64_t>(walk(0).size()) - 1; }

void run_replay(const Sweep& sweep, const Registry& registry, const ReplayOptions& options, reports::Report& report) {
  const auto jobs = jobs_of(sweep, registry, options);
  std::vector<NamedJob> named;
  for (const Job& job : jobs) {
    named.push_back({name_of(job), static_cast<std::size_t>(job.test - sweep.cases.data()), {broken(job, options)}});
  }
  run_jobs(
      named,
      [&](std::size_t i) {
        auto rows = rows_of_job(jobs[i], options);
        for (Result& row : rows)
          if ((row.outcome == Outcome::fail || row.outcome == Outcome::error) && row.repro.empty())
            row.repro = repro_of(jobs[i], options, options.step);
        return rows;
      },
      options.loop, report);
}

std::vector<std::string> list_replay(const Sweep& sweep, const Registry& registry, const ReplayOptions& options) {
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, registry, options)) lines.push_back(name_of(job));
  return lines;
}

}  // namespace deltagauge::validate
