#include "bench/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <utility>

#include "bench/gate.h"
#include "bench/measure.h"
#include "bench/timer.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "validate/checks/check.h"
#include "validate/choice.h"
#include "validate/mark.h"
#include "validate/run.h"

namespace deltagauge::bench {
namespace {

using reports::Outcome, reports::Result;

struct Job {
  const SweepCase* test;
  const Backend* backend;
  std::vector<std::string> timers;
};

bool is_cuda(const Backend& backend) { return backend.name().starts_with("cuda."); }

std::vector<Job> jobs_of(const Sweep& sweep, const Registry& registry, const BenchOptions& options) {
  const auto wanted = registry.match(options.backend);
  std::vector<Job> jobs;
  for (const SweepCase& test : sweep.cases) {
    if (!glob_match(options.filter, to_id(test.test)) && !glob_match(options.filter, test.name)) continue;
    for (const Backend* backend : registry.match(sweep.backend)) {
      if (std::find(wanted.begin(), wanted.end(), backend) == wanted.end() || !validate::serves(*backend, test.test.problem))
        continue;
      Job job{&test, backend, {}};
      for (const std::string& timer : options.timers)
        if (on_device(timer) == is_cuda(*backend)) job.timers.push_back(timer);
      if (!job.timers.empty()) jobs.push_back(std::move(job));
    }
  }
  return jobs;
}

// The inputs and the gate of one case, made when first asked for.
class Subject {
 public:
  Subject(const SweepCase& test, const BenchOptions& options) : test_(test), options_(options) {}
  const SweepCase& test() const { return test_; }
  const Tensors& inputs() {
    if (!inputs_) {
      const validate::Mark mark("inputs");
      inputs_ = make_inputs(test_.test);
    }
    return *inputs_;
  }
  Gate& gate() {
    if (!gate_) gate_.emplace(test_, inputs(), options_.oracle, options_.gate_token_heads);
    return *gate_;
  }

 private:
  const SweepCase& test_;
  const BenchOptions& options_;
  std::optional<Tensors> inputs_;
  std::optional<Gate> gate_;
};

class Bench {
 public:
  Bench(const BenchOptions& options, reports::Report& report) : options_(options), report_(report) {}

  void run(const Job& job, Subject& subject) {
    if (!jobs_.empty() && jobs_.back()->test != job.test) judge_choices();
    jobs_.push_back(&job);
    const Problem& problem = job.test->test.problem;
    if (const auto why = job.backend->unsupported(problem)) {
      const bool missing = why->starts_with("no GPU") && options_.cuda_missing_is_failure;
      for (const std::string& timer : job.timers) report(add(job, timer, missing ? Outcome::fail : Outcome::skip, *why));
      return;
    }
    std::unique_ptr<Plan> plan;
    std::map<std::string, std::string> digests;
    validate::Recording recording(options_.spans);
    try {
      plan = validate::planned(*job.backend, problem, subject.inputs());
      validate::run_plan(*plan);
      const Tensors outputs = plan->outputs();
      validate::Verdict verdict = subject.gate().judge(job.backend->staging(problem), outputs);
      for (const TensorSpec& spec : op_info(problem.op).outputs(problem))
        digests[spec.name] = digest(get(outputs, spec.name));
      Result& row = add(job, "accuracy", verdict.outcome, verdict.reason);
      row.tensors = std::move(verdict.tensors);
      row.digests = digests;
      row.spans = recording.take();
      report(row);
    } catch (const std::exception& error) {
      report(add(job, "accuracy", Outcome::error, error.what()));
    }
    const bool passed = report_.results.back().outcome == Outcome::pass;
    for (const std::string& timer : job.timers) {
      if (!passed)
        report(add(job, timer, Outcome::error, "its accuracy gate did not pass: no time is given for a wrong answer"));
      else
        time(job, timer, subject, *plan, digests);
    }
  }

  // After the last backend of a case: where the library chooses among variants, the one that it takes against the fastest of
  // those that were timed; a row a timer.
  void judge_choices() {
    const auto jobs = std::exchange(jobs_, {});
    const std::size_t first = std::exchange(first_, report_.results.size());
    for (const std::string& timer : options_.timers) {
      std::map<std::string_view, const Result*> timed;  // by backend
      for (std::size_t i = first; i < first_; ++i) {
        const Result& row = report_.results[i];
        if (row.check == timer && row.timing) timed[row.backend] = &row;
      }
      for (const Job* job : jobs) {
        const std::string chosen = job->backend->chosen(job->test->test.problem);
        if (job->backend->name() != chosen || !timed.contains(chosen)) continue;
        const Result *best = timed.at(chosen), *own = best;
        std::size_t variants = 0;
        for (const Job* other : jobs) {
          const auto found = timed.find(other->backend->name());
          if (found == timed.end() || other->backend->chosen(job->test->test.problem) != chosen) continue;
          ++variants;
          if (found->second->timing->median < best->timing->median) best = found->second;
        }
        if (variants < 2) continue;
        judge_choice(*job, timer, *own, *best);
        break;  // its rows may have moved
      }
    }
    first_ = report_.results.size();
  }

 private:
  void judge_choice(const Job& job, const std::string& timer, const Result& own, const Result& best) {
    const double over = own.timing->median / best.timing->median;
    const auto ns = [](const Result& row) { return std::to_string(std::llround(1e9 * row.timing->median)) + " ns"; };
    const bool pass = over <= validate::kMostOverBest;
    const std::string reason = pass ? ""
                                    : "the variant chosen: expected at most 5 % more than the " + ns(best) + " of " +
                                          best.backend + ", got " + ns(own);
    Result& row = add(job, "dispatch-" + timer, pass ? Outcome::pass : Outcome::fail, reason);
    row.values["over_best_variant"] = over;
    report(row);
  }

  void time(const Job& job, const std::string& timer, Subject& subject, Plan& plan,
            const std::map<std::string, std::string>& digests) {
    const Problem& problem = job.test->test.problem;
    const OpInfo& op = op_info(problem.op);
    const validate::Mark mark((to_id(job.test->test) + " " + std::string(job.backend->name()) + " " + timer).c_str());
    validate::Recording recording(options_.spans);
    try {
      const auto make_plan = [&] { return validate::planned(*job.backend, problem, subject.inputs()); };
      const auto clock = make_timer(timer, plan, make_plan, op.bytes(problem));
      const auto& roofline = on_device(timer) ? report_.roofline : std::nullopt;
      reports::Timing timing =
          measure(*clock, op.flops(problem), op.bytes(problem), roofline, options_.stop, [&] { return conditions(); });
      Result& row = add(job, timer, Outcome::pass, "");
      row.timing = std::move(timing);
      row.digests = digests;
      row.spans = recording.take();
      report(row);
    } catch (const std::exception& error) {
      report(add(job, timer, Outcome::error, error.what()));
    }
  }

  Result& add(const Job& job, const std::string& check, Outcome outcome, const std::string& reason) {
    const auto now = std::chrono::steady_clock::now();
    Result& row = report_.results.emplace_back();
    row.test = to_id(job.test->test);
    row.name = job.test->name;
    row.op = job.test->test.problem.op;
    row.direction = job.test->test.problem.direction == Direction::fwd ? "fwd" : "bwd";
    row.backend = job.backend->name();
    row.check = check;
    row.outcome = outcome;
    row.reason = reason;
    row.seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    if (outcome == Outcome::fail || outcome == Outcome::error)
      row.repro = "deltagauge bench --case '" + row.test + "' --backend " + row.backend +
                  (options_.cuda_missing_is_failure ? " --require-gpu" : "");
    return row;
  }
  void report(const Result& row) const {
    if (options_.progress) options_.progress(row);
  }

  const BenchOptions& options_;
  reports::Report& report_;
  std::vector<const Job*> jobs_;                // of the case at hand
  std::size_t first_ = report_.results.size();  // its first row
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

void run_bench(const Sweep& sweep, const Registry& registry, const BenchOptions& options, reports::Report& report) {
  const auto jobs = jobs_of(sweep, registry, options);
  const bool device = std::any_of(jobs.begin(), jobs.end(), [](const Job& job) {
    return is_cuda(*job.backend) && !job.backend->unsupported(job.test->test.problem);
  });
  if (device && !report.roofline) report.roofline = measure_roofline();
  Bench bench(options, report);
  std::optional<Subject> subject;
  for (const Job& job : jobs) {
    if (!subject || &subject->test() != job.test) subject.emplace(*job.test, options);
    bench.run(job, *subject);
  }
  bench.judge_choices();
}

std::vector<std::string> list_bench(const Sweep& sweep, const Registry& registry, const BenchOptions& options) {
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, registry, options))
    for (const std::string& timer : job.timers)
      lines.push_back(to_id(job.test->test) + " " + std::string(job.backend->name()) + " " + timer);
  return lines;
}

}  // namespace deltagauge::bench
