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

// The cases that pass the filter, in the modes asked for.
std::vector<SweepCase> cases_of(const Sweep& sweep, const RangeOptions& options) {
  std::vector<SweepCase> cases;
  const auto add = [&](const SweepCase& test) {
    const std::string id = to_id(test.test);
    const bool there =
        std::any_of(cases.begin(), cases.end(), [&](const SweepCase& other) { return other.test == test.test; });
    if (!there && (glob_match(options.filter, id) || glob_match(options.filter, test.name))) cases.push_back(test);
  };
  for (SweepCase test : sweep.cases) {
    if (test.expect == "refused") continue;
    if (!options.both_modes) {
      add(test);
      continue;
    }
    for (const MathMode mode : {MathMode::precise, MathMode::fast}) {
      test.test.problem.math = mode;
      add(test);
    }
  }
  return cases;
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
    } else if (job.quantity && job.quantity->of_g && problem.raw_gate == Switch::on) {
      result.outcome = Outcome::skip;
      result.reason = "raw_gate: expected off for quantity " + std::string(job.quantity->name) + ", got on";
    } else {
      result = job.quantity ? frontier(job.test->test, *job.backend, *job.quantity, draws) : range_row(job, context());
    }
  } catch (const std::exception& error) {
    result = {};
    result.outcome = Outcome::error;
    result.reason = error.what();
  }
  const std::string id = to_id(job.test->test), quantity(job.quantity ? job.quantity->name : "");
  if (result.test.empty()) result.test = id;
  if (result.name.empty()) result.name = job.quantity ? quantity : job.test->name;
  result.op = problem.op;
  result.direction = problem.direction == Direction::fwd ? "fwd" : "bwd";
  result.backend = job.backend->name();
  result.check = job.quantity ? "frontier" : "range";
  if (result.outcome == Outcome::fail || result.outcome == Outcome::error)
    result.repro = "deltagauge range --case " + shell_quoted(id) + " --backend " + result.backend +
                   (job.quantity ? " --quantity " + quantity : " --no-frontiers");
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

void add_peer_backends(Registry& registry) {
  for (const reference::Staging& staging : reference::peer_stagings()) registry.add(std::make_unique<PeerBackend>(staging));
}

void run_range(const Sweep& sweep, const Registry& registry, const RangeOptions& options, reports::Report& report) {
  const auto cases = cases_of(sweep, options);
  Draws draws(options.oracle);
  std::unique_ptr<Context> context;
  const SweepCase* now = nullptr;
  for (const Job& job : jobs_of(cases, sweep, registry, options)) {
    if (job.test != now) {
      context.reset();
      draws.clear();
      now = job.test;
    }
    const auto get_context = [&]() -> Context& {
      if (!context) context = std::make_unique<Context>(*job.test, make_inputs(job.test->test), options.oracle);
      return *context;
    };
    report.results.push_back(run_job(job, get_context, draws, options));
    if (options.progress) options.progress(report.results.back());
  }
}

std::vector<std::string> list_range(const Sweep& sweep, const Registry& registry, const RangeOptions& options) {
  const auto cases = cases_of(sweep, options);
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(cases, sweep, registry, options))
    lines.push_back(to_id(job.test->test) + " " + std::string(job.backend->name()) +
                    (job.quantity ? " frontier " + std::string(job.quantity->name) : " range"));
  return lines;
}

}  // namespace deltagauge::validate
