#include "bench/run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <span>
#include <utility>

#include "bench/gate.h"
#include "bench/measure.h"
#include "bench/timer.h"
#include "core/digest.h"
#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "validate/both_math.h"
#include "validate/checks/check.h"
#include "validate/choice.h"
#include "validate/mark.h"
#include "validate/run.h"

namespace deltagauge::bench {
namespace {

using reports::Outcome, reports::Result, validate::NamedJob;

constexpr std::string_view kGate = "accuracy";  // the check of rows that are no timer's

struct Job {
  const SweepCase* test;
  const Backend* backend;
  std::vector<std::string> timers;
};

Sweep swept(Sweep sweep, const BenchOptions& options) {
  if (options.both_math) sweep.cases = validate::in_both_modes(sweep.cases);
  return sweep;
}

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

// The command that shows a row again. timer: that it needs; empty: the gate is enough.
std::string repro(const Job& job, std::string_view backends, std::string_view timer) {
  return "deltagauge bench --case " + validate::shell_quoted(to_id(job.test->test)) + " --backend " + std::string(backends) +
         (timer.empty() ? "" : " --timer " + std::string(timer));
}
std::string repro(const Job& job, std::string_view check) {
  return repro(job, job.backend->name(), check == kGate ? "" : check);
}

NamedJob named(const Job& job, std::size_t test) {
  NamedJob out{to_id(job.test->test) + " " + std::string(job.backend->name()) + " bench", test, {}};
  std::vector<std::string> checks = job.timers;
  checks.insert(checks.begin(), std::string(kGate));
  for (const std::string& check : checks) {
    out.rows.push_back(validate::row_before(*job.test, job.backend->name(), check));
    out.rows.back().repro = repro(job, check);
  }
  return out;
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

  // The gate and the timers of a job.
  std::vector<Result> run(const Job& job, Subject& subject) {
    last_ = std::chrono::steady_clock::now();
    const Problem& problem = job.test->test.problem;
    if (const auto why = job.backend->unsupported(problem)) {
      const bool missing = why->starts_with("no GPU") && options_.cuda_missing_is_failure;
      for (const std::string& timer : job.timers) add(job, timer, missing ? Outcome::fail : Outcome::skip, *why);
      return std::exchange(rows_, {});
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
      Result& row = add(job, kGate, verdict.outcome, verdict.reason);
      row.tensors = std::move(verdict.tensors);
      row.digests = digests;
      row.spans = recording.take();
    } catch (const std::exception& error) {
      add(job, kGate, Outcome::error, error.what());
    }
    const Outcome gate = rows_.back().outcome;
    const std::string why = rows_.back().reason;
    for (const std::string& timer : job.timers) {
      if (gate == Outcome::skip)
        add(job, timer, gate, why);
      else if (gate != Outcome::pass)
        add(job, timer, Outcome::error, "its accuracy gate did not pass: no time is given for a wrong answer");
      else
        time(job, timer, subject, *plan, digests);
    }
    return std::exchange(rows_, {});
  }

  // The rows of a job are the report's, wherever they were judged.
  void take(const Job& job, std::size_t rows) {
    if (!jobs_.empty() && jobs_.back()->test != job.test) {  // an interrupt left out the rest of that case
      jobs_.clear();
      first_ = report_.results.size() - rows;
    }
    jobs_.push_back(&job);
    for (std::size_t i = report_.results.size() - rows; i < report_.results.size(); ++i)  // a worker knows no roofline
      if (auto& timing = report_.results[i].timing; timing && is_cuda(*job.backend))
        timing->floor = floor_of(timing->flops, timing->bytes, report_.roofline);
  }

  // After the last backend of a case, of so many: where the library chooses among variants, the one that it takes against
  // the fastest of those that were timed, and fast math beside precise where asked for; a row a timer.
  void end_case(std::size_t backends) {
    auto jobs = std::exchange(jobs_, {});
    if (jobs.size() < backends) jobs.clear();
    last_ = std::chrono::steady_clock::now();
    for (const std::string& timer : options_.timers) {
      std::map<std::string_view, const Result*> timed;  // by backend
      for (std::size_t i = first_; i < report_.results.size(); ++i) {
        const Result& row = report_.results[i];
        if (row.check == timer && row.timing) timed[row.backend] = &row;
      }
      for (const Job* job : jobs) {
        const std::string chosen = job->backend->chosen(job->test->test.problem);
        if (job->backend->name() != chosen || !timed.contains(chosen)) continue;
        const Result *best = timed.at(chosen), *own = best;
        std::size_t variants = 0;
        std::string names;
        for (const Job* other : jobs) {
          const auto found = timed.find(other->backend->name());
          if (found == timed.end() || other->backend->chosen(job->test->test.problem) != chosen) continue;
          names += (variants++ ? "," : "") + std::string(other->backend->name());
          if (found->second->timing->median < best->timing->median) best = found->second;
        }
        if (variants < 2) continue;
        judge_choice(*job, timer, *own, *best, names);
        break;
      }
    }
    if (options_.both_math)
      for (const Job* job : jobs)
        if (job->test->test.problem.math == MathMode::fast) put_side_by_side(*job);
    for (Result& row : std::exchange(rows_, {})) report_.results.push_back(std::move(row));
    first_ = report_.results.size();
  }

 private:
  // variants: those that were timed, own and best among them.
  void judge_choice(const Job& job, const std::string& timer, const Result& own, const Result& best,
                    const std::string& variants) {
    const double over = own.timing->median / best.timing->median;
    const auto ns = [](const Result& row) { return std::to_string(std::llround(1e9 * row.timing->median)) + " ns"; };
    const bool pass = over <= validate::kMostOverBest;
    const std::string reason = pass ? ""
                                    : "the variant chosen: expected at most 5 % more than the " + ns(best) + " of " +
                                          best.backend + ", got " + ns(own);
    Result& row = add(job, "dispatch-" + timer, pass ? Outcome::pass : Outcome::fail, reason);
    row.values["over_best_variant"] = over;
    if (!pass) row.repro = repro(job, variants, timer) + options_.loop.repro_flags;
  }

  // The row of a check, or null. Those asked for are among the last.
  const Result* find(const std::string& id, const Job& job, std::string_view check) const {
    const auto found = std::find_if(report_.results.rbegin(), report_.results.rend(), [&](const Result& row) {
      return row.check == check && row.backend == job.backend->name() && row.test == id;
    });
    return found == report_.results.rend() ? nullptr : &*found;
  }

  // Fast math beside precise, where both have a time: a row a timer.
  void put_side_by_side(const Job& fast) {
    Case precise = fast.test->test;
    precise.problem.math = MathMode::precise;
    const std::string ids[] = {to_id(fast.test->test), to_id(precise)};
    for (const std::string& timer : fast.timers) {
      const Result *own = find(ids[0], fast, timer), *other = find(ids[1], fast, timer);
      if (!own || !other || !own->timing || !other->timing) continue;
      const double seconds = own->timing->median, beside = other->timing->median;
      Result& row = add(fast, "math-" + timer, Outcome::pass, "");
      row.values = {{"fast_seconds", seconds}, {"precise_seconds", beside}, {"precise_over_fast", beside / seconds}};
      row.tensors = find(ids[0], fast, kGate)->tensors;
      for (const auto& [name, metrics] : find(ids[1], fast, kGate)->tensors) row.tensors.emplace(name + ".precise", metrics);
    }
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
    } catch (const std::exception& error) {
      add(job, timer, Outcome::error, error.what());
    }
  }

  Result& add(const Job& job, std::string_view check, Outcome outcome, const std::string& reason) {
    const auto now = std::chrono::steady_clock::now();
    Result& row = rows_.emplace_back(validate::row_before(*job.test, job.backend->name(), check));
    row.outcome = outcome;
    row.reason = reason;
    row.seconds = std::chrono::duration<double>(now - last_).count();
    last_ = now;
    if (outcome == Outcome::fail || outcome == Outcome::error) row.repro = repro(job, check);
    return row;
  }

  const BenchOptions& options_;
  reports::Report& report_;
  std::vector<Result> rows_;                    // of the job at hand
  std::vector<const Job*> jobs_;                // of the case at hand
  std::size_t first_ = report_.results.size();  // its first row
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

}  // namespace

void run_bench(const Sweep& given, const Registry& registry, const BenchOptions& options, reports::Report& report) {
  const Sweep sweep = swept(given, options);
  const auto jobs = jobs_of(sweep, registry, options);
  std::vector<NamedJob> all;
  for (const Job& job : jobs) all.push_back(named(job, static_cast<std::size_t>(job.test - sweep.cases.data())));
  const bool worker = !options.loop.only.empty();
  const bool device = std::any_of(jobs.begin(), jobs.end(), [](const Job& job) {
    return is_cuda(*job.backend) && !job.backend->unsupported(job.test->test.problem);
  });
  if (device && !worker && !report.roofline) report.roofline = measure_roofline();
  Bench bench(options, report);
  std::optional<Subject> subject;
  const auto run = [&](std::size_t i) {
    if (!subject || &subject->test() != jobs[i].test) subject.emplace(*jobs[i].test, options);
    return bench.run(jobs[i], *subject);
  };
  std::size_t done = 0;
  validate::Loop loop = options.loop;
  loop.done = [&](std::span<const Result> rows) {
    while (all[done].name != rows[0].job) ++done;  // past what an interrupt left out, and what is no job of this worker
    const Job& job = jobs[done];
    if (!worker) bench.take(job, rows.size());
    if (options.loop.done) options.loop.done(rows);
    const auto of_case = std::count_if(jobs.begin(), jobs.end(), [&](const Job& one) { return one.test == job.test; });
    if (++done < jobs.size() && jobs[done].test == job.test) return;
    if (!worker) bench.end_case(static_cast<std::size_t>(of_case));
  };
  validate::run_jobs(all, run, loop, report);
}

std::vector<std::string> list_bench(const Sweep& given, const Registry& registry, const BenchOptions& options) {
  const Sweep sweep = swept(given, options);
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, registry, options))
    for (const std::string& timer : job.timers)
      lines.push_back(to_id(job.test->test) + " " + std::string(job.backend->name()) + " " + timer);
  return lines;
}

std::size_t count_bench_jobs(const Sweep& given, const Registry& registry, const BenchOptions& options) {
  return jobs_of(swept(given, options), registry, options).size();
}

}  // namespace deltagauge::bench
