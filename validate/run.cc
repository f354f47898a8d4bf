#include "validate/run.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/staging.h"
#include "validate/checks/check.h"
#include "validate/context.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

struct Job {
  const SweepCase* test;
  const Backend* backend;
  const Check* check;
};

// Whether the backend answers this op at all: the op of the staging it declares. One that answers another op makes no row.
bool serves(const Backend& backend, const Problem& problem) {
  return reference::staging(backend.staging(problem)).op == problem.op;
}

std::vector<Job> jobs_of(const SweepCase& test, const Registry& registry, std::string_view glob, const RunOptions& options) {
  std::vector<Job> jobs;
  const auto wanted = registry.match(options.backend);
  for (const Backend* backend : registry.match(glob)) {
    if (std::find(wanted.begin(), wanted.end(), backend) == wanted.end() || !serves(*backend, test.test.problem)) continue;
    for (const std::string& name : options.checks.empty() ? test.checks : options.checks)
      jobs.push_back({&test, backend, &find_check(name)});
  }
  return jobs;
}

std::vector<Job> jobs_of(const Sweep& sweep, const Registry& registry, const RunOptions& options) {
  std::vector<Job> jobs;
  for (const SweepCase& test : sweep.cases) {
    if (!glob_match(options.filter, to_id(test.test)) && !glob_match(options.filter, test.name)) continue;
    const auto more = jobs_of(test, registry, sweep.backend, options);
    jobs.insert(jobs.end(), more.begin(), more.end());
  }
  return jobs;
}

std::string repro(const Job& job, const std::string& source) {
  return "deltagauge validate " + source + " --check " + std::string(job.check->info().name) + " --backend " +
         std::string(job.backend->name());
}

// A case that the config wants refused: by make_inputs, by the backend's plan or by its run.
Verdict judge_refusal(const Job& job, const std::function<Context&()>& context) {
  Verdict verdict;
  try {
    outputs_of(*job.backend, job.test->test.problem, context().inputs());
    verdict.add_failure("expected a refusal, got an answer");
  } catch (const Error&) {  // refused, as it should be
  }
  return verdict;
}

// One (case, backend, check): the verdict, or an error row when the machinery fails.
Result judge_job(const Job& job, const std::function<Context&()>& context, const RunOptions& options, std::string source) {
  const Problem& problem = job.test->test.problem;
  const auto start = std::chrono::steady_clock::now();
  Result result;
  result.test = to_id(job.test->test);
  result.name = job.test->name;
  result.op = problem.op;
  result.direction = problem.direction == Direction::fwd ? "fwd" : "bwd";
  result.backend = job.backend->name();
  result.check = job.check->info().name;
  const bool must_refuse = job.test->expect == "refused";
  Verdict verdict;
  try {
    const auto why = job.backend->unsupported(problem);
    const bool no_gpu = why && why->starts_with("no GPU");
    if (why && (no_gpu || !must_refuse)) {
      verdict = skip(*why);
      if (no_gpu && options.cuda_missing_is_failure) verdict.outcome = Outcome::fail;
    } else if (must_refuse) {
      if (!why) verdict = judge_refusal(job, context);
    } else {
      verdict = job.check->run(context(), *job.backend);
    }
    result.outcome = verdict.outcome;
    result.reason = verdict.reason;
    result.tensors = std::move(verdict.tensors);
  } catch (const std::exception& error) {
    result.outcome = Outcome::error;
    result.reason = error.what();
  }
  if (result.outcome == Outcome::fail || result.outcome == Outcome::error) result.repro = repro(job, source);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

void run_jobs(const std::vector<Job>& jobs, const std::function<Tensors(const SweepCase&)>& inputs_of,
              const std::function<std::string(const SweepCase&)>& source_of, const RunOptions& options,
              reports::Report& report) {
  std::unique_ptr<Context> context;
  std::size_t done = 0;
  for (const Job& job : jobs) {
    if (context && &context->test() != job.test) context.reset();
    const auto get_context = [&]() -> Context& {
      if (!context) context = std::make_unique<Context>(*job.test, inputs_of(*job.test), options.oracle);
      return *context;
    };
    report.results.push_back(judge_job(job, get_context, options, source_of(*job.test)));
    if (options.progress) options.progress(++done, jobs.size(), report.results.back());
  }
}

}  // namespace

void run_sweep(const Sweep& sweep, const Registry& registry, const RunOptions& options, reports::Report& report) {
  const auto source = [&](const SweepCase& test) {
    const std::string id = to_id(test.test);  // a ceiling stands in the config only
    return test.ceilings.empty() || options.config.empty() ? "--case '" + id + "'"
                                                           : "'" + options.config + "' --filter '" + id + "'";
  };
  run_jobs(
      jobs_of(sweep, registry, options), [](const SweepCase& test) { return make_inputs(test.test); }, source, options,
      report);
}

void run_on_inputs(const SweepCase& test, const Tensors& inputs, const Registry& registry, const RunOptions& options,
                   reports::Report& report) {
  const auto source = [&](const SweepCase& one) { return "--tensors '" + options.config + "' --op " + one.test.problem.op; };
  run_jobs(
      jobs_of(test, registry, "*", options), [&](const SweepCase&) { return inputs; }, source, options, report);
}

std::vector<std::string> list_sweep(const Sweep& sweep, const Registry& registry, const RunOptions& options) {
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, registry, options))
    lines.push_back(to_id(job.test->test) + " " + std::string(job.backend->name()) + " " +
                    std::string(job.check->info().name));
  return lines;
}

}  // namespace deltagauge::validate
