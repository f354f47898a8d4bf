// Degrees, tables and promises; what is compared with what.
#include "validate/cp/check.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "kernels/cp/tables.h"
#include "reference/staging.h"
#include "validate/budget.h"
#include "validate/cp/digests.h"
#include "validate/floor.h"
#include "validate/run.h"

namespace deltagauge::validate::cp {
namespace {

using kernels::cp::FragmentTable, kernels::cp::Plan, reports::Outcome, reports::Result;

// Where the cuts of a table may fall, and what follows from that.
struct Promise {
  const char* name;
  std::int64_t cuts;     // TableRequest::segment
  std::int64_t segment;  // of the plan
  bool same_bits;        // else within the budget
};

struct Sharded {
  Plan plan;
  Tensors outputs;
  Digests digests;
};

class Sweeper {
 public:
  Sweeper(Context& context, const StagedOp& op, const Options& options)
      : context_(context), p_(context.problem()), op_(op), options_(options), documents_(documents_of(p_)) {
    for (const auto& kind : kernels::cp::table_kinds())
      if (options.tables.empty() || std::ranges::count(options.tables, kind.name)) kinds_.push_back(&kind);
  }

  CpVerdict judge() {
    const std::int64_t L = options_.segment;
    for (const TensorSpec& spec : op_info(p_.op).outputs(p_)) outputs_.push_back(spec.name);
    whole_ = op_.whole(p_, context_.inputs());
    for (const std::string& name : outputs_) {
      const Yardstick& yard = context_.output(op_.staging(), name);
      unsharded_[name] = measure(get(whole_, name), *yard.want, yard.rows, yard.budget);
      whole_yards_.emplace(name, yard);
      floors_[name] = rounding_floor(p_, context_.inputs(), reference::staging(op_.staging()), name, yard.rows);
    }
    const Sharded alone = run(one_rank(), 0, Fault::none), walk = run(one_rank(), L, Fault::none);
    expect_bits(alone, whole_, nullptr, "documents on one rank");
    expect_budget(walk, whole_yards_, "boundaries on one rank");
    const Promise promises[] = {
        {"documents", 0, 0, true}, {"boundaries", L, L, true}, {"anywhere", -1, L, false}, {"anywhere", -1, 0, false}};
    for (const Promise& promise : promises) follow(promise, promise.segment ? walk : alone);
    for (const std::int64_t degree : options_.degrees) replay(promises, degree);
    verdict_.values["degrees"] = static_cast<double>(options_.degrees.size());
    return {std::move(verdict_), failed_degree_, failed_table_};
  }

 private:
  FragmentTable one_rank() const { return documents_.back() ? FragmentTable{{{0, documents_.back()}}} : FragmentTable{{}}; }

  Sharded run(const FragmentTable& table, std::int64_t segment, Fault fault) {
    const Plan plan = kernels::cp::plan(documents_, table, segment);
    kernels::cp::Caps caps = kernels::cp::caps_of(plan);
    ++caps.slots;  // room that nobody fills must change nothing
    ++caps.segments;
    caps.rows += 3;
    return sharded(plan, run_ranks(op_, p_, context_.inputs(), plan, caps, true, fault));
  }

  Sharded sharded(const Plan& plan, const std::vector<RankAnswer>& ranks) const {
    return {plan, assemble(p_, plan, ranks), kernels::cp::canonical(plan) ? digests_of(plan, ranks) : Digests{}};
  }

  // All tables of one degree through one captured call.
  void replay(std::span<const Promise> promises, std::int64_t degree) {
    struct Layout {
      const Promise& promise;
      const kernels::cp::TableKind& kind;
      Plan plan;
    };
    std::vector<Layout> layouts;
    kernels::cp::Caps caps;
    for (const Promise& promise : promises)
      for (const auto* kind : kinds_) {
        const FragmentTable table = kernels::cp::make_table(kind->name, {documents_, degree, promise.cuts, 1});
        layouts.push_back({promise, *kind, kernels::cp::plan(documents_, table, promise.segment)});
        caps = kernels::cp::widest(caps, kernels::cp::caps_of(layouts.back().plan));
      }
    std::unique_ptr<Captured> captured;
    for (const Layout& layout : layouts) {
      const Ranks ranks = ranks_of(p_, context_.inputs(), layout.plan, caps);
      if (!captured) captured = op_.capture(ranks);
      if (!captured) return;
      const Sharded eager = sharded(layout.plan, op_.ranks(ranks, true));
      const Sharded got = sharded(layout.plan, captured->replay(ranks));
      ++verdict_.values["graph.tables"];
      const auto before = verdict_.values["broken"];
      expect_bits(got, eager.outputs, &eager.digests, "graph, " + where_of(layout.promise, layout.kind, degree));
      note_first(before, degree, layout.kind);
    }
  }

  static std::string where_of(const Promise& promise, const kernels::cp::TableKind& kind, std::int64_t degree) {
    return std::string(promise.name) + ", table " + std::string(kind.name) + ", degree " + std::to_string(degree) +
           (promise.segment ? "" : ", no segments");
  }

  void follow(const Promise& promise, const Sharded& base) {
    std::vector<FragmentTable> done;
    double& runs = verdict_.values[std::string(promise.name) + ".tables"];
    for (const std::int64_t degree : options_.degrees)
      for (const auto* kind : kinds_) {
        const FragmentTable table = kernels::cp::make_table(kind->name, {documents_, degree, promise.cuts, 1});
        if (std::ranges::count(done, table)) continue;
        done.push_back(table);
        const Sharded got = run(table, promise.segment, options_.fault);
        const std::string where = where_of(promise, *kind, degree);
        ++runs;
        const auto before = verdict_.values["broken"];
        if (promise.same_bits) expect_bits(got, base.outputs, &base.digests, where);
        if (!promise.same_bits) expect_budget(got, yards_of(got.plan), where);
        if (!promise.same_bits && p_.data.kind == "lattice") expect_bits(got, whole_, nullptr, where);
        note_first(before, degree, *kind);
      }
  }

  // before: comparisons broken before this run.
  void note_first(double before, std::int64_t degree, const kernels::cp::TableKind& kind) {
    if (before > 0 || verdict_.values["broken"] == 0) return;
    failed_degree_ = degree;
    failed_table_ = kind.name;
  }

  // Outputs bit for bit and, where given, digests.
  void expect_bits(const Sharded& got, const Tensors& want, const Digests* digests, const std::string& where) {
    std::string why;
    for (const std::string& name : outputs_) {
      const Tensor& tensor = get(got.outputs, name);
      const Rows rows = rows_of(p_, name, tensor.shape());
      verdict_.compared += elements_of(rows);
      const std::string differs = bit_mismatch(p_, name, tensor, get(want, name), rows);
      if (why.empty() && !differs.empty()) why = name + ": " + differs;
    }
    if (digests && !got.digests.empty())
      if (const auto first = first_difference(got.plan, got.digests, *digests))
        why = "bits first differ at " + *first + (why.empty() ? "" : "; ") + why;
    fail_with(where, why);
  }

  using Yardsticks = std::map<std::string, Yardstick>;

  // The budgets of the whole op with its chunks where the plan's are.
  const Yardsticks& yards_of(const Plan& plan) {
    std::vector<std::int64_t> starts;
    for (const kernels::cp::RankPlan& rank : plan.ranks)
      for (const kernels::cp::Segment& segment : rank.segments) starts.push_back(segment.first);
    std::ranges::sort(starts);
    const auto [found, fresh] = yards_.try_emplace(std::move(starts));
    if (!fresh) return found->second;
    const reference::Staging& staging = reference::staging(op_.staging());
    const Tensors chained = run_chained(staging, p_, context_.inputs(), plan);
    for (const auto& [name, whole] : whole_yards_) {
      const Tensor& emulated = get(chained, name);
      found->second.emplace(name, Yardstick{whole.want, whole.rows,
                                            make_budget(p_, name, whole.rows, emulated, *whole.want, floors_.at(name),
                                                        emulated.dtype(), staging)});
    }
    return found->second;
  }

  // Row by row within these budgets, and all rows together within those of the whole op.
  void expect_budget(const Sharded& got, const Yardsticks& yards, const std::string& where) {
    for (const std::string& name : outputs_) {
      Verdict one;
      judge_tensor(name, get(got.outputs, name), yards.at(name), one);
      const reports::TensorMetrics &metrics = one.tensors.at(name), &unsharded = unsharded_.at(name);
      const double error = error_over_budget(get(got.outputs, name), whole_yards_.at(name));
      if (one.outcome == Outcome::pass && !(error <= 1))
        one.add_failure(name + ": the error of all rows together is " + std::to_string(error) +
                        " of their budget unsharded");
      verdict_.compared += one.compared;
      if (one.outcome != Outcome::pass) fail_with(where, one.reason);
      keep_worst(name + ".error_over_budget", error);
      keep_worst(name + ".error_over_unsharded", unsharded.rel_l2 > 0 ? metrics.rel_l2 / unsharded.rel_l2 : 0);
      const auto kept = verdict_.tensors.find(name);
      if (kept == verdict_.tensors.end() || reports::worse(metrics.row_ratio, kept->second.row_ratio))
        verdict_.tensors.insert_or_assign(name, metrics);
    }
  }

  // Norm of the error over the norm of the budgets, both over all judged rows with a finite budget and right value.
  static double error_over_budget(const Tensor& got, const Yardstick& yard) {
    double error = 0, budget = 0;
    for (const Series& s : yard.rows.series)
      for (std::int64_t i = 0; i < s.count; ++i) {
        const std::int64_t row = s.first + i * s.stride;
        double square = 0;
        for (std::int64_t j = row * yard.rows.width; j < (row + 1) * yard.rows.width; ++j)
          square += std::pow(got.load(j) - yard.want->load(j), 2);
        const double B = yard.budget.row[static_cast<std::size_t>(row)];
        if (!std::isfinite(square) || !std::isfinite(B)) continue;  // judge_tensor's to say
        error += square;
        budget += B * B;
      }
    return error > 0 ? std::sqrt(error / budget) : 0;
  }

  void keep_worst(const std::string& key, double value) {
    double& kept = verdict_.values[key];
    if (reports::worse(value, kept)) kept = value;
  }

  // The first few in full; of the rest a count.
  void fail_with(const std::string& where, const std::string& why) {
    if (why.empty()) return;
    ++verdict_.values["broken"];
    verdict_.outcome = Outcome::fail;
    if (verdict_.values["broken"] <= kNamed) verdict_.add_failure(where + ": " + why);
  }

  static constexpr double kNamed = 4;
  Context& context_;
  const Problem& p_;
  const StagedOp& op_;
  const Options& options_;
  std::vector<std::int64_t> documents_;
  std::vector<const kernels::cp::TableKind*> kinds_;
  std::vector<std::string> outputs_;
  Tensors whole_;
  std::map<std::string, reports::TensorMetrics> unsharded_;
  Yardsticks whole_yards_;
  std::map<std::string, std::vector<double>> floors_;
  std::map<std::vector<std::int64_t>, Yardsticks> yards_;  // by the first tokens of the segments
  Verdict verdict_;
  std::int64_t failed_degree_ = 0;
  std::string failed_table_;
};

struct Job {
  const SweepCase* test;
  const StagedOp* op;
};

std::vector<Job> jobs_of(const Sweep& sweep, const StagedOps& ops, const Options& options) {
  const auto matches = [](const std::string& globs, std::string_view name) {
    for (std::size_t at = 0; at <= globs.size();) {
      const std::size_t end = std::min(globs.find(',', at), globs.size());
      if (glob_match(std::string_view(globs).substr(at, end - at), name)) return true;
      at = end + 1;
    }
    return false;
  };
  const bool named = std::ranges::any_of(ops, [&](const auto& op) { return matches(sweep.backend, op->name()); });
  std::vector<Job> jobs;
  for (const SweepCase& test : sweep.cases) {
    if (test.expect == "refused") continue;
    if (!glob_match(options.filter, to_id(test.test)) && !glob_match(options.filter, test.name)) continue;
    for (const auto& op : ops)
      if (matches(options.backend, op->name()) && (!named || matches(sweep.backend, op->name())))
        jobs.push_back({&test, op.get()});
  }
  return jobs;
}

std::string name_of(const Job& job) { return to_id(job.test->test) + " " + std::string(job.op->name()) + " cp"; }

std::string repro(const std::string& id, const StagedOp& op, const Options& options, const CpVerdict& failed) {
  std::string line = "deltagauge cp --case " + shell_quoted(id) + " --backend " + std::string(op.name());
  if (options.segment != Options{}.segment) line += " --segment " + std::to_string(options.segment);
  if (failed.degree) return line + " --degree " + std::to_string(failed.degree) + " --table " + failed.table;
  if (options.degrees != Options{}.degrees)
    for (const std::int64_t degree : options.degrees) line += " --degree " + std::to_string(degree);
  for (const std::string& table : options.tables) line += " --table " + table;
  return line;
}

Result run_job(const Job& job, std::unique_ptr<Context>& context, const Options& options) {
  const Problem& problem = job.test->test.problem;
  const auto start = std::chrono::steady_clock::now();
  Result result = row_before(*job.test, job.op->name(), "cp");
  CpVerdict judged;
  Verdict& verdict = judged.verdict;
  try {
    if (const auto why = job.op->unsupported(problem)) {
      verdict = skip(*why);
      if (options.cuda_missing_is_failure && why->starts_with("no GPU")) verdict.outcome = Outcome::fail;
    } else {
      if (!context || &context->test() != job.test)
        context = std::make_unique<Context>(*job.test, make_inputs(job.test->test), options.oracle);
      judged = judge_cp(*context, *job.op, options);
      verdict = unless_empty(std::move(verdict));
    }
    result.outcome = verdict.outcome;
    result.reason = verdict.reason;
    result.tensors = std::move(verdict.tensors);
    result.values = std::move(verdict.values);
    if (result.outcome != Outcome::fail)
      for (auto& [name, metrics] : result.tensors) metrics.map.reset();
  } catch (const std::exception& error) {
    result.outcome = Outcome::error;
    result.reason = error.what();
  }
  if (result.outcome == Outcome::fail || result.outcome == Outcome::error)
    result.repro = repro(result.test, *job.op, options, judged);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

}  // namespace

CpVerdict judge_cp(Context& context, const StagedOp& op, const Options& options) {
  for (const std::string& table : options.tables) kernels::cp::make_table(table, {std::vector<std::int64_t>{0}, 1, 0, 0});
  return Sweeper(context, op, options).judge();
}

void run_cp(const Sweep& sweep, const StagedOps& ops, const Options& options, reports::Report& report) {
  const auto jobs = jobs_of(sweep, ops, options);
  std::vector<NamedJob> named;
  for (const Job& job : jobs) {
    Result before = row_before(*job.test, job.op->name(), "cp");
    before.repro = repro(before.test, *job.op, options, {});
    named.push_back({name_of(job), static_cast<std::size_t>(job.test - sweep.cases.data()), {std::move(before)}});
  }
  std::unique_ptr<Context> context;
  run_jobs(
      named, [&](std::size_t i) { return std::vector<Result>{run_job(jobs[i], context, options)}; }, options.loop, report);
}

std::vector<std::string> list_cp(const Sweep& sweep, const StagedOps& ops, const Options& options) {
  std::vector<std::string> lines;
  for (const Job& job : jobs_of(sweep, ops, options)) lines.push_back(name_of(job));
  return lines;
}

}  // namespace deltagauge::validate::cp
