// No time for a wrong answer: rows of the bench on CPU backends, right, wrong and unable.
#include "bench/run.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "reference/staging.h"
#include "validate/run.h"

namespace deltagauge::bench {
namespace {

using reports::Outcome;

// Wraps a backend and breaks one element of o.
class Wrong : public Backend {
 public:
  explicit Wrong(const Backend& right) : right_(right) {}
  std::string_view name() const override { return "wrong"; }
  std::string_view summary() const override { return "one element of o is off"; }
  std::optional<std::string> unsupported(const Problem& p) const override { return right_.unsupported(p); }
  std::string_view staging(const Problem& p) const override { return right_.staging(p); }
  std::unique_ptr<Plan> plan(const Problem& p, const Tensors& inputs, const PlanOptions& options) const override {
    return std::make_unique<WrongPlan>(right_.plan(p, inputs, options));
  }

 private:
  class WrongPlan : public Plan {
   public:
    explicit WrongPlan(std::unique_ptr<Plan> plan) : plan_(std::move(plan)) {}
    void run() override { plan_->run(); }
    Tensors outputs() const override {
      Tensors out = plan_->outputs();
      Tensor& o = out.find("o")->second;
      o.store(o.numel() - 1, o.load(o.numel() - 1) + 1);
      return out;
    }

   private:
    std::unique_ptr<Plan> plan_;
  };
  const Backend& right_;
};

// A variant of two between which the library chooses: another backend under a name of its own, after a pause.
class Variant : public Backend {
 public:
  Variant(const Backend& right, std::string name, std::string chosen, std::chrono::milliseconds pause)
      : right_(right), name_(std::move(name)), chosen_(std::move(chosen)), pause_(pause) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "a variant"; }
  std::optional<std::string> unsupported(const Problem& p) const override { return right_.unsupported(p); }
  std::string_view staging(const Problem& p) const override { return right_.staging(p); }
  std::string chosen(const Problem&) const override { return chosen_; }
  std::unique_ptr<Plan> plan(const Problem& p, const Tensors& inputs, const PlanOptions& options) const override {
    return std::make_unique<Paused>(right_.plan(p, inputs, options), pause_);
  }

 private:
  class Paused : public Plan {
   public:
    Paused(std::unique_ptr<Plan> plan, std::chrono::milliseconds pause) : plan_(std::move(plan)), pause_(pause) {}
    void run() override {
      std::this_thread::sleep_for(pause_);
      plan_->run();
    }
    Tensors outputs() const override { return plan_->outputs(); }

   private:
    std::unique_ptr<Plan> plan_;
    std::chrono::milliseconds pause_;
  };
  const Backend& right_;
  std::string name_, chosen_;
  std::chrono::milliseconds pause_;
};

class Run : public testing::Test {
 protected:
  Run() {
    validate::add_cpu_backends(registry_);
    registry_.add(std::make_unique<Wrong>(registry_.get("reference.recurrent")));
    validate::add_cuda_backends(registry_);
    SweepCase& test = sweep_.cases.emplace_back();
    test.test = parse_id("gdn/fwd/len=70+33,HK=1,HV=2,K=16,V=16/bf16/gate=mild/keys=iid/precise/seed=3");
    sweep_.backend = "*";
    options_.stop.min_time = 0x1p-30;
    options_.stop.timeout = 0;
  }
  reports::Report run(const std::string& backend) {
    options_.backend = backend;
    reports::Report report;
    run_bench(sweep_, registry_, options_, report);
    return report;
  }
  Registry registry_;
  Sweep sweep_;
  BenchOptions options_;
};

TEST_F(Run, gives_the_gate_and_then_the_time_with_the_digests_of_the_judged_outputs) {
  const auto report = run("reference.recurrent");
  ASSERT_EQ(report.results.size(), 2U);
  EXPECT_EQ(report.results[0].check, "accuracy");
  EXPECT_EQ(report.results[0].outcome, Outcome::pass);
  EXPECT_EQ(report.results[1].check, "cpu");
  EXPECT_EQ(report.results[1].outcome, Outcome::pass);
  ASSERT_TRUE(report.results[1].timing.has_value());
  EXPECT_GT(report.results[1].timing->median, 0);
  EXPECT_EQ(report.results[1].digests.size(), 2U);
  EXPECT_EQ(report.results[1].digests, report.results[0].digests);
  EXPECT_EQ(report.exit_status(), 0);
}

TEST_F(Run, keeps_what_ran_when_where_it_is_asked_to) {
  EXPECT_TRUE(run("reference.recurrent").results[0].spans.empty());
  options_.spans = true;
  const auto report = run("reference.recurrent");
  const auto names = [](const reports::Result& row) {
    std::string text;
    for (const reports::Span& span : row.spans) text += (text.empty() ? "" : ", ") + span.name;
    return text;
  };
  EXPECT_EQ(names(report.results[0]), "inputs, plan, run, judge");
  EXPECT_EQ(names(report.results[1]), "warm up, samples");
}

TEST_F(Run, gives_no_time_where_the_gate_fails_and_the_exit_status_says_so) {
  const auto report = run("wrong");
  ASSERT_EQ(report.results.size(), 2U);
  EXPECT_EQ(report.results[0].outcome, Outcome::fail);
  EXPECT_NE(report.results[0].reason.find("sequence 1, head 1 alone: o"), std::string::npos) << report.results[0].reason;
  EXPECT_EQ(report.results[1].outcome, Outcome::error);
  EXPECT_FALSE(report.results[1].timing.has_value());
  const std::string again = "deltagauge bench --case '" + report.results[0].test + "' --backend wrong";
  EXPECT_EQ(report.results[0].repro, again);
  EXPECT_EQ(report.results[1].repro, again + " --timer cpu");
  EXPECT_EQ(report.exit_status(), 1);
}

TEST_F(Run, gives_no_time_where_the_gate_has_nothing_to_compare) {
  sweep_.cases[0].test = parse_id("gdn/fwd/len=0x2,HK=1,HV=2,K=16,V=16/bf16/final=off/seed=3");
  const auto report = run("reference.recurrent");
  ASSERT_EQ(report.results.size(), 2U);
  for (const reports::Result& row : report.results) {
    EXPECT_EQ(row.outcome, Outcome::skip) << row.check;
    EXPECT_NE(row.reason.find("nothing to compare"), std::string::npos) << row.reason;
  }
  EXPECT_EQ(report.exit_status(), 3);
}

TEST_F(Run, judges_a_large_case_on_parts_of_it) {
  options_.gate_token_heads = 80;  // the first sequence of head 0 and nothing more
  const auto report = run("wrong");
  EXPECT_EQ(report.results[0].outcome, Outcome::pass);  // the wrong element lies elsewhere: what parts cannot see
  options_.gate_token_heads = 110;
  EXPECT_EQ(run("wrong").results[0].outcome, Outcome::fail);  // the corners are the first parts
}

TEST_F(Run, holds_the_variant_that_the_library_takes_against_the_fastest) {
  for (const std::string chosen : {"two.quick", "two.slow"}) {
    Registry registry;
    validate::add_cpu_backends(registry);
    const Backend& right = registry.get("reference.recurrent");
    registry.add(std::make_unique<Variant>(right, "two.quick", chosen, std::chrono::milliseconds(1)));
    registry.add(std::make_unique<Variant>(right, "two.slow", chosen, std::chrono::milliseconds(100)));
    SweepCase again = sweep_.cases[0];  // a row a case
    again.test.seed = 4;
    Sweep sweep = sweep_;
    sweep.cases.push_back(again);
    options_.backend = "two.*,reference.recurrent";
    options_.loop.repro_flags = " --oracle f64";
    reports::Report report;
    run_bench(sweep, registry, options_, report);
    ASSERT_EQ(report.results.size(), 14U);
    for (const std::size_t at : {6U, 13U}) {
      const reports::Result& row = report.results[at];
      EXPECT_EQ(row.check, "dispatch-cpu");
      EXPECT_EQ(row.backend, chosen);
      EXPECT_EQ(row.test, report.results[at - 1].test);
      if (chosen == "two.quick") {
        EXPECT_EQ(row.outcome, Outcome::pass) << row.reason;
        EXPECT_EQ(row.values.at("over_best_variant"), 1);
      } else {
        EXPECT_EQ(row.outcome, Outcome::fail);
        EXPECT_NE(row.reason.find("of two.quick, got"), std::string::npos) << row.reason;
        EXPECT_EQ(row.repro,
                  "deltagauge bench --case '" + row.test + "' --backend two.quick,two.slow --timer cpu --oracle f64");
      }
    }
    options_.backend = "two.slow,reference.recurrent";  // nothing to choose from
    reports::Report alone;
    run_bench(sweep_, registry, options_, alone);
    EXPECT_EQ(alone.results.size(), 4U);
  }
}

TEST_F(Run, puts_fast_and_precise_math_side_by_side) {
  Case fast = sweep_.cases[0].test;
  fast.problem.math = MathMode::fast;
  sweep_.cases.emplace_back().test = fast;  // there already, so not run twice
  EXPECT_EQ(run("reference.recurrent").results.size(), 4U);
  options_.both_math = true;
  const auto report = run("reference.recurrent,reference.chunk64");
  ASSERT_EQ(report.results.size(), 10U);
  for (const std::size_t i : {0U, 1U}) {  // backends
    const reports::Result &row = report.results[8 + i], &precise = report.results[2 * i + 1],
                          &own = report.results[2 * i + 5];
    EXPECT_EQ(row.check, "math-cpu");
    EXPECT_EQ(row.outcome, Outcome::pass);
    EXPECT_EQ(row.test, to_id(fast));
    EXPECT_EQ(row.backend, own.backend);
    EXPECT_EQ(own.test, row.test);
    EXPECT_EQ(row.values.at("fast_seconds"), own.timing->median);
    EXPECT_EQ(row.values.at("precise_seconds"), precise.timing->median);
    EXPECT_EQ(row.values.at("precise_over_fast"), precise.timing->median / own.timing->median);
    for (const char* tensor : {"o", "final_state"}) {
      EXPECT_EQ(row.tensors.at(tensor).rel_l2, report.results[2 * i + 4].tensors.at(tensor).rel_l2);
      EXPECT_EQ(row.tensors.at(tensor + std::string(".precise")).rel_l2, report.results[2 * i].tensors.at(tensor).rel_l2);
    }
  }
  options_.backend = "reference.recurrent,cuda.gdn.recurrent";
  options_.timers = {"graph-cold", "cpu"};
  EXPECT_EQ(list_bench(sweep_, registry_, options_).size(), 4U);
}

TEST_F(Run, puts_nothing_beside_a_time_that_is_not_there) {
  options_.both_math = true;
  for (const reports::Result& row : run("wrong").results) EXPECT_FALSE(row.check.starts_with("math-")) << row.check;
}

TEST_F(Run, takes_timers_that_suit_the_backend) {
  options_.backend = "reference.recurrent,cuda.gdn.recurrent";
  EXPECT_EQ(list_bench(sweep_, registry_, options_).size(), 4U);
  options_.timers = {"graph-cold"};
  EXPECT_EQ(list_bench(sweep_, registry_, options_).size(), 1U);
}

}  // namespace
}  // namespace deltagauge::bench
