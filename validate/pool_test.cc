// The state pool under every check: right backends pass, one that touches a slot that is not its own does not.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"
#include "reference/staging.h"
#include "validate/backends/arena_plan.h"
#include "validate/run.h"
#include "validate/slice.h"
#include "validate/tensors.h"

namespace deltagauge::validate {
namespace {

constexpr const char* kCase =
    "gdn/fwd/len=9+0+5+70+1+3+0,HK=1,HV=2,K=16,V=16,cap=100/bf16/h0=normal=1/slots=12/slot_pad=8/idx=holes=5/has=mixed/"
    "seed=2";

Sweep sweep_of(const std::string& id, std::vector<std::string> checks) {
  Sweep sweep{"", "test", "*", {}};
  SweepCase& one = sweep.cases.emplace_back();
  one.test = parse_id(id);
  one.checks = std::move(checks);
  return sweep;
}

TEST(Pool, right_backends_pass_every_check) {
  Registry registry;
  add_cpu_backends(registry);
  reports::Report report;
  RunOptions options;
  options.backend = "oracle.f64,reference.recurrent,reference.chunk64,reference.as_kernel.chunk64.io.tc";
  for (const char* more : {"", "/data=lattice/scale=1/gate=none"})
    run_sweep(sweep_of(std::string(kCase) + more, {"accuracy", "stages", "guard", "determinism", "packing", "causal"}),
              registry, options, report);
  EXPECT_EQ(report.results.size(), 2u * 4 * 6);
  for (const auto& row : report.results)
    EXPECT_TRUE(row.outcome == reports::Outcome::pass || (row.check == "stages" && row.outcome == reports::Outcome::skip))
        << row.backend << " " << row.check << ": " << row.reason;
}

// The emulator's answer with one thing done to the pool behind its back.
class Careless : public Backend {
 public:
  Careless(std::string name, std::int64_t slot) : name_(std::move(name)), slot_(slot) {}
  std::string_view name() const override { return name_; }
  std::string_view summary() const override { return "writes one element of a slot"; }
  std::optional<std::string> unsupported(const Problem&) const override { return {}; }
  std::string_view staging(const Problem&) const override { return "chunk64.io.tc"; }
  std::unique_ptr<Plan> plan(const Problem& p, const Tensors& inputs, const PlanOptions& options) const override {
    class Writes : public ArenaPlan {
     public:
      Writes(const Problem& p, const Tensors& inputs, const PlanOptions& options, std::int64_t slot)
          : ArenaPlan(
                p, inputs, options,
                [p](const Tensors& from) { return reference::run(p, from, reference::staging("chunk64.io.tc"), false); }),
            slot_(slot) {}
      void run() override {
        ArenaPlan::run();
        const float x = 3;
        arena_.put("final_state", slot_ * problem_.HV * problem_.V * problem_.K, reinterpret_cast<const std::byte*>(&x), 4);
      }

     private:
      std::int64_t slot_;
    };
    return std::make_unique<Writes>(p, inputs, options, slot_);
  }

 private:
  std::string name_;
  std::int64_t slot_;
};

TEST(Pool, a_slot_that_no_sequence_owns_must_keep_its_bits) {
  const Problem p = parse_id(kCase).problem;
  const auto slots = p.state_indices();
  Registry registry;
  std::int64_t free = 1;
  while (std::find(slots.begin(), slots.end(), free) != slots.end()) ++free;
  registry.add(std::make_unique<Careless>("zero", 0));
  registry.add(std::make_unique<Careless>("free", free));
  registry.add(std::make_unique<Careless>("own", slots[0]));
  reports::Report report;
  run_sweep(sweep_of(kCase, {"guard", "accuracy"}), registry, {}, report);
  ASSERT_EQ(report.results.size(), 6u);
  for (const auto& row : report.results) {
    const bool caught = row.outcome == reports::Outcome::fail;
    EXPECT_EQ(caught, (row.backend == "own") == (row.check == "accuracy")) << row.backend << " " << row.check;
    if (row.check != "guard" || !caught) continue;
    EXPECT_NE(row.reason.find("of slots that no sequence owns were written, the first at [" +
                              std::to_string(row.backend == "zero" ? 0 : free) + ", 0, 0, 0]: slot "),
              std::string::npos)
        << row.reason;
  }
}

TEST(Pool, a_part_of_a_case_has_the_slot_of_its_sequence) {
  const Case c = parse_id(kCase);
  const Tensors inputs = make_inputs(c);
  const auto& s = reference::staging("chunk64.io.tc");
  const Tensors whole = reference::run(c.problem, inputs, s, false);
  for (std::int64_t n = 0; n < c.problem.sequences(); ++n) {
    const Part part{n, 1};
    const Problem small = part_problem(c.problem, part);
    const Tensors got = reference::run(small, part_inputs(c.problem, part, inputs), s, false);
    const Tensors want = part_outputs(c.problem, part, whole);
    EXPECT_TRUE(bitwise_equal(get(got, "o"), get(want, "o"))) << n;
    if (small.state_indices()[0] > 0) {
      EXPECT_TRUE(bitwise_equal(rows(get(got, "final_state"), 1, 1), rows(get(want, "final_state"), 1, 1))) << n;
      EXPECT_EQ(whole_index(c.problem, part, "final_state", {1, 0, 0, 0})[0],
                c.problem.state_indices()[static_cast<std::size_t>(n)]);
    }
  }
}

TEST(Pool, comes_from_a_file_of_tensors) {
  const Case c = parse_id(kCase);
  Safetensors file{make_inputs(c), {}};
  const GivenCase given = case_from_tensors(file, "gdn", {});
  EXPECT_EQ(given.test.problem.slots, 12);
  EXPECT_EQ(given.test.problem.state_indices(), c.problem.state_indices());
  EXPECT_EQ(given.test.problem.has_initial_state(), c.problem.has_initial_state());
  EXPECT_EQ(parse_id(to_id(given.test)), given.test);
  for (const auto& [name, tensor] : given.inputs) EXPECT_TRUE(bitwise_equal(tensor, get(file.tensors, name))) << name;
  const auto error = [&](std::string_view tensor, Tensor instead) -> std::string {
    Safetensors other = file;
    other.tensors[std::string(tensor)] = std::move(instead);
    try {
      case_from_tensors(other, "gdn", {});
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(error("state_indices", Tensor(DType::i32, {2})), "state_indices: expected shape [7], got [2]");
  EXPECT_EQ(error("state_indices", Tensor(DType::f32, {7})), "state_indices: expected dtype i32 or i64, got f32");
  EXPECT_EQ(error("has_initial_state", Tensor(DType::i32, {7})), "has_initial_state: expected dtype bool, got i32");
}

}  // namespace
}  // namespace deltagauge::validate
