#include "validate/replay/replay.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include "core/inputs.h"
#include "core/op.h"
#include "validate/choice.h"
#include "validate/mark.h"
#include "validate/replay/layout.h"
#include "validate/replay/walk.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

constexpr int kParts[] = {1, 2, 4, 16, 64};  // of the capacity one in so many is active, timed
constexpr int kSamples = 21;
constexpr double kSampleSeconds = 200e-6;
constexpr std::int64_t kMostCalls = 256;

std::vector<ReplayJob> jobs_of(const Sweep& sweep, const Registry& registry, const ReplayOptions& options) {
  const auto asked = registry.match(options.backend);
  std::vector<ReplayJob> jobs;
  for (const SweepCase& test : sweep.cases) {
    const std::string id = to_id(test.test);
    if (test.expect == "refused" || !(glob_match(options.filter, id) || glob_match(options.filter, test.name))) continue;
    for (const Backend* backend : registry.match(sweep.backend))
      if (std::find(asked.begin(), asked.end(), backend) != asked.end() && serves(*backend, test.test.problem))
        jobs.push_back({&test, backend, backend});
  }
  return jobs;
}

std::string name_of(const ReplayJob& job) {
  return to_id(job.test->test) + " " + std::string(job.backend->name()) + " replay";
}

Tensors inputs_of(const Case& test) {
  const Mark mark("inputs");
  return make_inputs(test);
}

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
Result row_of(const ReplayJob& job, const std::string& check, const Part& part) {
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
    Result row = row_of(one.job, "replay-time-", part);
    bool timed = true;
    work_on(row, options, [&] {
      if (!inputs) inputs = inputs_of(part.layout);
      timed = keep_time(part.layout, *inputs, *one.replay, row);
    });
    if (!timed) continue;
    if (row.outcome == Outcome::error) row.repro = repro_of(one.job, options, 0);
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
std::vector<Result> rows_of_job(const ReplayJob& job, const ReplayOptions& options) {
  const std::vector<Walked> all = walked(job, options);
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
Result broken(const ReplayJob& job, const ReplayOptions& options) {
  Result row = row_before(*job.test, job.backend->name(), "replay");
  row.repro = repro_of(job, options, options.step);
  return row;
}

}  // namespace

std::int64_t last_step() { return static_cast<std::int64_t>(walk(0).size()) - 1; }

void run_replay(const Sweep& sweep, const Registry& registry, const ReplayOptions& options, reports::Report& report) {
  const auto jobs = jobs_of(sweep, registry, options);
  std::vector<NamedJob> named;
  for (const ReplayJob& job : jobs) {
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
  for (const ReplayJob& job : jobs_of(sweep, registry, options)) lines.push_back(name_of(job));
  return lines;
}

}  // namespace deltagauge::validate
