#include "validate/replay/replay.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numeric>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "validate/checks/check.h"
#include "validate/metrics.h"
#include "validate/replay/layout.h"
#include "validate/rows.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;
using Clock = std::chrono::steady_clock;

constexpr double kParts[] = {1, 1. / 2, 1. / 4, 1. / 16, 1. / 64};  // of the capacity, timed
constexpr int kSamples = 21;
constexpr double kSampleSeconds = 200e-6;
constexpr std::int64_t kMostCalls = 256;

struct Job {
  const SweepCase* test;
  const Backend* backend;
};

std::vector<Job> jobs_of(const Sweep& sweep, const Registry& registry, const ReplayOptions& options) {
  const auto asked = registry.match(options.backend);
  std::vector<Job> jobs;
  for (const SweepCase& test : sweep.cases) {
    const std::string id = to_id(test.test);
    if (test.expect == "refused" || !(glob_match(options.filter, id) || glob_match(options.filter, test.name))) continue;
    for (const Backend* backend : registry.match(sweep.backend))
      if (std::find(asked.begin(), asked.end(), backend) != asked.end() && serves(*backend, test.test.problem))
        jobs.push_back({&test, backend});
  }
  return jobs;
}

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

Result row_of(const Job& job, std::string check) {
  Result row;
  row.test = to_id(job.test->test);
  row.name = job.test->name;
  row.op = job.test->test.problem.op;
  row.direction = job.test->test.problem.direction == Direction::fwd ? "fwd" : "bwd";
  row.backend = job.backend->name();
  row.check = std::move(check);
  row.outcome = Outcome::pass;
  return row;
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

// A replay against a call on fresh memory; the first difference of each output in words.
Verdict judge(const Backend& backend, const Problem& layout, const Tensors& inputs, const Replayable& replay) {
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
    for (std::size_t step = first; step <= last; ++step) {
      const Case now = at(step);
      const Problem& layout = now.problem;
      const Tensors inputs = make_inputs(now);
      const std::optional<Replayable::Counts> earlier = replay.counts();
      replay.load(inputs);
      replay.replay();
      Verdict verdict = judge(*job_.backend, layout, inputs, replay);
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
      if (!failed++) {
        row.reason = "replay " + std::to_string(step) + " (" + std::string(name(classes_[step])) +
                     (step ? " after " + std::string(name(classes_[step - 1])) : "") + "; " + in_words(layout) +
                     "): " + verdict.reason;
        row.repro = "deltagauge replay --case " + shell_quoted(row.test) + " --backend " + row.backend + " --walk " +
                    std::to_string(options_.walk) + " --step " + std::to_string(step);
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

// The time of a replay by the active part of the capacity; no rows where nothing keeps time.
std::vector<Result> time_rows(const Job& job, Replayable& replay) {
  std::vector<Result> rows;
  for (const double part : kParts) {
    const auto start = Clock::now();
    Case layout{active_layout(job.test->test.problem, part), job.test->test.seed, {}};
    replay.load(make_inputs(layout));
    const auto once = replay.seconds(8);
    if (!once) return {};
    const auto calls = std::clamp<std::int64_t>(std::llround(std::ceil(kSampleSeconds / *once)), 1, kMostCalls);
    std::vector<double> samples;
    for (int i = 0; i < kSamples; ++i) samples.push_back(*replay.seconds(calls));
    Result row = row_of(job, "replay-time");
    row.test = to_id(layout);
    row.name = "active 1/" + std::to_string(std::llround(1 / part));
    row.timing = timing_of(std::move(samples), calls);
    row.timing->active = active_part(layout.problem);
    row.timing->flops = op_info(layout.problem.op).flops(layout.problem);
    row.timing->bytes = op_info(layout.problem.op).bytes(layout.problem);
    row.seconds = seconds_since(start);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<Result> rows_of_job(const Job& job, const ReplayOptions& options) {
  const auto start = Clock::now();
  Result row = row_of(job, "replay");
  std::vector<Result> rows;
  try {
    const Problem& capacity = job.test->test.problem;
    auto why = job.backend->unsupported(capacity);
    const bool no_gpu = why && why->starts_with("no GPU");
    if (!why && !job.test->test.overrides.empty()) why = "overrides: expected none, since layouts move what they name";
    if (!why) why = no_layouts(capacity);
    if (why) {
      row.outcome = no_gpu && options.cuda_missing_is_failure ? Outcome::fail : Outcome::skip;
      row.reason = *why;
    } else {
      Walker walker(job, options);
      const Case first = walker.at(0);  // full: what a capture would see
      const auto replay = options.capture(*job.backend, first.problem, make_inputs(first));
      row = walker.run(*replay);
      if (options.times && !options.step && row.outcome == Outcome::pass) rows = time_rows(job, *replay);
    }
  } catch (const std::exception& error) {
    row.outcome = Outcome::error;
    row.reason = error.what();
  }
  row.seconds = seconds_since(start);
  for (const Result& timed : rows) row.seconds -= timed.seconds;
  rows.insert(rows.begin(), std::move(row));
  return rows;
}

}  // namespace

void run_replay(const Sweep& sweep, const Registry& registry, const ReplayOptions& options, reports::Report& report) {
  for (const Job& job : jobs_of(sweep, registry, options))
    for (Result& row : rows_of_job(job, options)) {
      if (options.progress && row.check == "replay") options.progress(row);
      report.results.push_back(std::move(row));
    }
}

std::vector<std::string> list_replay(const Sweep& sweep, const Registry& registry, const ReplayOptions& options) {
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, registry, options))
    lines.push_back(to_id(job.test->test) + " " + std::string(job.backend->name()) + " replay");
  return lines;
}

}  // namespace deltagauge::validate
