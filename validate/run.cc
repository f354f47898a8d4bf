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
#include "validate/isolate.h"
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

JobName name_of(const Job& job) {
  return {to_id(job.test->test), std::string(job.backend->name()), std::string(job.check->info().name)};
}

std::string repro(const JobName& job, const std::string& source, const RunOptions& options) {
  return "deltagauge validate " + source + " --check " + job.check + " --backend " + job.backend +
         (source.starts_with("--case ") ? "" : options.config_flags) + options.repro_flags;
}

// The row of a job before anything ran.
Result row_of(const Job& job) {
  const JobName name = name_of(job);
  Result result;
  result.test = name.test;
  result.name = job.test->name;
  result.op = job.test->test.problem.op;
  result.direction = job.test->test.problem.direction == Direction::fwd ? "fwd" : "bwd";
  result.backend = name.backend;
  result.check = name.check;
  return result;
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

// One (case, backend, check): the verdict, or an error row when the machinery fails.
Result judge_job(const Job& job, const std::function<Context&()>& context, const RunOptions& options) {
  const Problem& problem = job.test->test.problem;
  Result result = row_of(job);
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
      verdict = job.check->run(context(), *job.backend);
    }
    result.outcome = verdict.outcome;
    result.reason = verdict.reason;
    result.tensors = std::move(verdict.tensors);
    result.values = std::move(verdict.values);
    if (result.outcome == Outcome::pass) result.note = std::move(verdict.note);
    if (!options.maps && result.outcome != Outcome::fail)
      for (auto& [name, metrics] : result.tensors) metrics.map.reset();
  } catch (const std::exception& error) {
    result.outcome = Outcome::error;
    result.reason = error.what();
  }
  result.spans = recording.take();
  return result;
}

// The numbers of job i and of those behind it that are of its case and still to run.
std::vector<std::size_t> batch_of(const std::vector<Job>& jobs, std::size_t i, const RunOptions& options) {
  std::vector<std::size_t> numbers;
  for (std::size_t j = i; j < jobs.size() && jobs[j].test == jobs[i].test; ++j)
    if (j == i || !options.known || !options.known(name_of(jobs[j]))) numbers.push_back(options.first + j);
  return numbers;
}

void run_jobs(const std::vector<Job>& jobs, const std::function<Tensors(const SweepCase&)>& inputs_of,
              const std::function<std::string(const SweepCase&)>& source_of, const RunOptions& options,
              reports::Report& report) {
  std::unique_ptr<Context> context;
  std::size_t done = 0;
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    const Job& job = jobs[i];
    if (!options.only.empty() &&
        std::find(options.only.begin(), options.only.end(), options.first + i) == options.only.end())
      continue;
    if (context && &context->test() != job.test) context.reset();
    const auto get_context = [&]() -> Context& {
      if (!context) {
        const Mark inputs("inputs");
        context = std::make_unique<Context>(*job.test, inputs_of(*job.test), options.oracle);
      }
      return *context;
    };
    const Result* known = options.known ? options.known(name_of(job)) : nullptr;
    if (!known && options.stopped && options.stopped()) return;
    const auto start = std::chrono::steady_clock::now();
    Result result = known             ? *known
                    : options.workers ? options.workers->run(batch_of(jobs, i, options), row_of(job))
                                      : judge_job(job, get_context, options);
    if (!known) {
      result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      if (result.outcome == Outcome::fail || result.outcome == Outcome::error)
        result.repro = repro(name_of(job), source_of(*job.test), options);
    }
    report.results.push_back(std::move(result));
    if (options.progress) options.progress(++done, jobs.size(), report.results.back());
  }
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
  run_jobs(
      jobs_of(sweep, registry, options), [](const SweepCase& test) { return make_inputs(test.test); }, source, options,
      report);
}

void run_on_inputs(const SweepCase& test, const Tensors& inputs, const Registry& registry, const RunOptions& options,
                   reports::Report& report) {
  const auto source = [&](const SweepCase& one) {
    return "--tensors " + shell_quoted(options.config) + " --op " + one.test.problem.op;
  };
  if (!wanted(test, options)) return;
  run_jobs(
      jobs_of(test, registry, "*", options), [&](const SweepCase&) { return inputs; }, source, options, report);
}

Result run_one(const SweepCase& test, const Backend& backend, std::string_view check, const RunOptions& options) {
  reports::Report report;
  run_jobs(
      {{&test, &backend, &find_check(check)}}, [](const SweepCase& one) { return make_inputs(one.test); }, source_of_id,
      options, report);
  return report.results.at(0);
}

std::vector<std::string> list_sweep(const Sweep& sweep, const Registry& registry, const RunOptions& options) {
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, registry, options))
    lines.push_back(to_id(job.test->test) + " " + std::string(job.backend->name()) + " " +
                    std::string(job.check->info().name));
  return lines;
}

}  // namespace deltagauge::validate
