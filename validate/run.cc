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
#include "validate/mark.h"

namespace deltagauge::validate {
namespace {

using reports::Outcome, reports::Result;

struct Job {
  const SweepCase* test;
  const Backend* backend;
  const Check* check;
};

std::vector<Job> jobs_of(const SweepCase& test, const Registry& registry, std::string_view glob, const RunOptions& options) {
  std::vector<Job> jobs;
  const auto wanted = registry.match(options.backend);
  for (const Backend* backend : registry.match(glob)) {
    if (std::find(wanted.begin(), wanted.end(), backend) == wanted.end() || !serves(*backend, test.test.problem)) continue;
    for (const std::string& name : options.checks.empty() ? test.checks : options.checks)
      for (const Check* check : find_checks(name)) jobs.push_back({&test, backend, check});
  }
  return jobs;
}

bool wanted(const SweepCase& test, const RunOptions& options) {
  return glob_match(options.filter, to_id(test.test)) || glob_match(options.filter, test.name);
}

std::vector<Job> jobs_of(const Sweep& sweep, const Registry& registry, const RunOptions& options) {
  std::vector<Job> jobs;
  for (const SweepCase& test : sweep.cases) {
    if (!wanted(test, options)) continue;
    const auto more = jobs_of(test, registry, sweep.backend, options);
    jobs.insert(jobs.end(), more.begin(), more.end());
  }
  return jobs;
}

std::string name_of(const Job& job) {
  return to_id(job.test->test) + " " + std::string(job.backend->name()) + " " + std::string(job.check->info().name);
}

std::string repro(const Job& job, const std::string& source, const RunOptions& options) {
  return "deltagauge validate " + source + " --check " + std::string(job.check->info().name) + " --backend " +
         std::string(job.backend->name()) + (source.starts_with("--case ") ? "" : options.config_flags);
}

// A case that the config wants refused: by make_inputs, by the backend's plan or by its run.
Verdict judge_refusal(const Job& job, const std::function<Context&()>& context) {
  Verdict verdict;
  try {
    outputs_of(*job.backend, job.test->test.problem, context().inputs());
    verdict.add_failure("expected a refusal, got an answer");
  } catch (const Refused&) {  // as it should be; any other Error is a case that nobody could run
  }
  return verdict;
}

// One (case, backend, check): the verdict, or an error row when the machinery fails. before: its row before anything ran.
Result judge_job(const Job& job, const Result& before, const std::function<Context&()>& context, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  const Problem& problem = job.test->test.problem;
  Result result = before;
  const Mark mark((result.test + " " + result.backend + " " + result.check).c_str());
  Recording recording(options.spans);
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
      verdict = unless_empty(job.check->run(context(), *job.backend));
    }
    result.outcome = verdict.outcome;
    result.reason = verdict.reason;
    result.tensors = std::move(verdict.tensors);
    result.values = std::move(verdict.values);
    if (!options.maps && result.outcome != Outcome::fail)
      for (auto& [name, metrics] : result.tensors) metrics.map.reset();
  } catch (const std::exception& error) {
    result.outcome = Outcome::error;
    result.reason = error.what();
  }
  result.spans = recording.take();
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  if (result.outcome != Outcome::fail && result.outcome != Outcome::error) result.repro.clear();
  return result;
}

void judge_jobs(const std::vector<Job>& jobs, const std::function<Tensors(const SweepCase&)>& inputs_of,
                const std::function<std::string(const SweepCase&)>& source_of, const RunOptions& options,
                reports::Report& report) {
  std::vector<NamedJob> named;
  for (const Job& job : jobs) {
    const bool same = !named.empty() && jobs[named.size() - 1].test == job.test;
    Result before = row_before(*job.test, job.backend->name(), job.check->info().name);
    before.repro = repro(job, source_of(*job.test), options);
    named.push_back({name_of(job), named.empty() ? 0 : named.back().test + !same, {std::move(before)}});
  }
  std::unique_ptr<Context> context;
  const auto judge = [&](std::size_t i) -> std::vector<Result> {
    const Job& job = jobs[i];
    if (context && &context->test() != job.test) context.reset();
    const auto get_context = [&]() -> Context& {
      if (!context) {
        const Mark inputs("inputs");
        context = std::make_unique<Context>(*job.test, inputs_of(*job.test), options.oracle);
      }
      return *context;
    };
    return {judge_job(job, named[i].rows[0], get_context, options)};
  };
  run_jobs(named, judge, options.loop, report);
}

std::string source_of_id(const SweepCase& test) { return "--case " + shell_quoted(to_id(test.test)); }

}  // namespace

std::string shell_quoted(std::string_view text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

bool serves(const Backend& backend, const Problem& problem) {
  return reference::staging(backend.staging(problem)).op == problem.op;
}

void run_sweep(const Sweep& sweep, const Registry& registry, const RunOptions& options, reports::Report& report) {
  const auto source = [&](const SweepCase& test) {
    const bool plain = test.ceilings.empty() && test.expect == "pass";  // the rest stands in the config only
    return plain || options.config.empty() ? source_of_id(test)
                                           : shell_quoted(options.config) + " --filter " + shell_quoted(to_id(test.test));
  };
  judge_jobs(
      jobs_of(sweep, registry, options), [](const SweepCase& test) { return make_inputs(test.test); }, source, options,
      report);
}

void run_on_inputs(const SweepCase& test, const Tensors& inputs, const Registry& registry, const RunOptions& options,
                   reports::Report& report) {
  const auto source = [&](const SweepCase& one) {
    return "--tensors " + shell_quoted(options.config) + " --op " + one.test.problem.op;
  };
  if (!wanted(test, options)) return;
  judge_jobs(
      jobs_of(test, registry, "*", options), [&](const SweepCase&) { return inputs; }, source, options, report);
}

Result run_one(const SweepCase& test, const Backend& backend, std::string_view check, const RunOptions& options) {
  reports::Report report;
  judge_jobs(
      {{&test, &backend, &find_check(check)}}, [](const SweepCase& one) { return make_inputs(one.test); }, source_of_id,
      options, report);
  return report.results.at(0);
}

std::vector<std::string> list_sweep(const Sweep& sweep, const Registry& registry, const RunOptions& options) {
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, registry, options)) lines.push_back(name_of(job));
  return lines;
}

}  // namespace deltagauge::validate
