#include "validate/range.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/staging.h"
#include "validate/backends/arena_plan.h"
#include "validate/context.h"
#include "validate/frontier.h"
#include "validate/run.h"
#include "validate/stage_ranges.h"
#include "validate/yardsticks.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

class PeerBackend : public Backend {
 public:
  explicit PeerBackend(const reference::Staging& staging)
      : name_("reference.peer." + std::string(staging.name)), staging_(staging) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return staging_.summary; }
  std::optional<std::string> unsupported(const Problem& problem) const override {
    if (problem.op != staging_.op) return "op: expected " + std::string(staging_.op) + ", got " + problem.op;
    return {};
  }
  std::string_view staging(const Problem&) const override { return staging_.name; }
  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override {
    return std::make_unique<ArenaPlan>(problem, inputs, options, [this, problem, taps = options.taps](const Tensors& from) {
      return reference::run(problem, from, staging_, taps);
    });
  }

 private:
  std::string name_;
  const reference::Staging& staging_;
};

struct Job {
  const SweepCase* test;
  const Backend* backend;
  const Quantity* quantity;  // null: a range row
};

// The cases that pass the filter.
std::vector<SweepCase> cases_of(const Sweep& sweep, const RangeOptions& options) {
  std::vector<SweepCase> cases;
  for (const SweepCase& test : sweep.cases)
    if (test.expect != "refused" && (glob_match(options.filter, to_id(test.test)) || glob_match(options.filter, test.name)))
      cases.push_back(test);
  return cases;
}

std::string name_of(const Job& job) {
  return to_id(job.test->test) + " " + std::string(job.backend->name()) +
         (job.quantity ? " frontier " + std::string(job.quantity->name) : " range");
}

Result before(const Job& job) {
  Result row = row_before(*job.test, job.backend->name(), job.quantity ? "frontier" : "range");
  const std::string quantity(job.quantity ? job.quantity->name : "");
  if (job.quantity) row.name = quantity;
  row.repro = "deltagauge range --case " + shell_quoted(row.test) + " --backend " + row.backend +
              (job.quantity ? " --quantity " + quantity : " --no-frontiers");
  return row;
}

std::vector<Job> jobs_of(const std::vector<SweepCase>& cases, const Sweep& sweep, const Registry& registry,
                         const RangeOptions& options) {
  std::vector<const Quantity*> wanted;
  if (options.frontiers) {
    for (const std::string& name : options.quantities) wanted.push_back(&find_quantity(name));
    if (options.quantities.empty())
      for (const Quantity& quantity : quantities()) wanted.push_back(&quantity);
  }
  const auto asked = registry.match(options.backend);
  std::vector<Job> jobs;
  for (const SweepCase& test : cases)
    for (const Backend* backend : registry.match(sweep.backend)) {
      if (std::find(asked.begin(), asked.end(), backend) == asked.end() || !serves(*backend, test.test.problem)) continue;
      jobs.push_back({&test, backend, nullptr});
      if (test.test.problem.op != "gdn") continue;
      for (const Quantity* quantity : wanted) jobs.push_back({&test, backend, quantity});
    }
  return jobs;
}

Result range_row(const Job& job, Context& context) {
  const Backend& backend = *job.backend;
  const std::string_view staging = backend.staging(context.problem());
  const auto yardsticks = wide_yardsticks(context.problem(), context.inputs(), context.gold(), reference::staging(staging));
  const StageRanges met = stage_ranges(backend, context.problem(), context.inputs(), yardsticks, [&](std::string_view tap) {
    return context.has_tap(staging, tap) ? context.tap(staging, tap).want : nullptr;
  });
  Result result;
  result.outcome = met.overflow.empty() ? Outcome::pass : Outcome::fail;
  result.reason = met.overflow;
  result.ranges = met.ranges;
  result.values = met.values;
  const bool any = std::any_of(met.ranges.begin(), met.ranges.end(), [](const auto& range) { return range.second.values; });
  if (!any && result.outcome == Outcome::pass) {
    result.outcome = Outcome::skip;
    result.reason = "nothing to measure: no stage holds a value";
  }
  return result;
}

Result run_job(const Job& job, const std::function<Context&()>& context, Draws& draws, const RangeOptions& options) {
  const Problem& problem = job.test->test.problem;
  const auto start = std::chrono::steady_clock::now();
  Result result;
  try {
    if (const auto why = job.backend->unsupported(problem)) {
      result.outcome = options.cuda_missing_is_failure && why->starts_with("no GPU") ? Outcome::fail : Outcome::skip;
      result.reason = *why;
    } else {
      result = job.quantity ? frontier(job.test->test, *job.backend, *job.quantity, draws) : range_row(job, context());
    }
  } catch (const std::exception& error) {
    result = {};
    result.outcome = Outcome::error;
    result.reason = error.what();
  }
  Result row = before(job);
  if (result.test.empty()) result.test = row.test;
  if (result.name.empty()) result.name = row.name;
  for (std::string Result::*same : {&Result::op, &Result::direction, &Result::backend, &Result::check})
    result.*same = row.*same;
  if (result.outcome == Outcome::fail || result.outcome == Outcome::error) result.repro = row.repro;
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

void add_peer_backends(Registry& registry) {
  for (const reference::Staging& staging : reference::peer_stagings()) registry.add(std::make_unique<PeerBackend>(staging));
}

void take_both_modes(Sweep& sweep) {
  std::vector<SweepCase> cases;
  for (SweepCase test : sweep.cases)
    for (const MathMode mode : {MathMode::precise, MathMode::fast}) {
      test.test.problem.math = mode;
      if (std::none_of(cases.begin(), cases.end(), [&](const SweepCase& other) { return other.test == test.test; }))
        cases.push_back(test);
    }
  sweep.cases = std::move(cases);
}

void run_range(const Sweep& sweep, const Registry& registry, const RangeOptions& options, reports::Report& report) {
  const auto cases = cases_of(sweep, options);
  const auto jobs = jobs_of(cases, sweep, registry, options);
  std::vector<NamedJob> named;
  for (const Job& job : jobs)
    named.push_back({name_of(job), static_cast<std::size_t>(job.test - cases.data()), {before(job)}});
  Draws draws(options.oracle);
  std::unique_ptr<Context> context;
  const SweepCase* now = nullptr;
  const auto run = [&](std::size_t i) -> std::vector<Result> {
    const Job& job = jobs[i];
    if (job.test != now) {
      context.reset();
      draws.clear();
      now = job.test;
    }
    const auto get_context = [&]() -> Context& {
      if (!context) context = std::make_unique<Context>(*job.test, make_inputs(job.test->test), options.oracle);
      return *context;
    };
    return {run_job(job, get_context, draws, options)};
  };
  run_jobs(named, run, options.loop, report);
}

std::vector<std::string> list_range(const Sweep& sweep, const Registry& registry, const RangeOptions& options) {
  const auto cases = cases_of(sweep, options);
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(cases, sweep, registry, options)) lines.push_back(name_of(job));
  return lines;
}

}  // namespace deltagauge::validate
