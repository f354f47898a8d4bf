// A part of a case is that case cut smaller: the same values, and the same answers of any backend.
#include "validate/slice.h"

#include <gtest/gtest.h>

#include "core/inputs.h"
#include "core/op.h"
#include "validate/checks/check.h"
#include "validate/run.h"

namespace deltagauge::validate {
namespace {

TEST(Slice, of_inputs_and_outputs_agrees_with_running_the_part_alone) {
  Registry registry;
  add_cpu_backends(registry);
  for (const char* id :
       {"gdn/fwd/len=70+0+33,HK=2,HV=4,K=16,V=32/bf16/gate=mild/keys=iid/precise/h0=normal=1/seed=3",
        "gdn/fwd/len=9+9,HK=3,HV=3,K=16,V=16/f16/gate=strong/keys=iid/precise/layout=dense/seed=4",
        "gdn/fwd/len=70+0+33,HK=2,HV=4,K=16,V=32/bf16/gate=model/raw_gate=on/transform=bounded/seed=3",
        "gdn_decode/fwd/len=1x3,HK=2,HV=4,K=8,V=4,cap=5/bf16/h0=normal=1/slots=7/slot_pad=3/idx=4+-1+6/has=0+1+1/seed=2",
        "l2norm/fwd/len=5+6,HK=3,K=16/bf16/precise/seed=1", "gate/fwd/len=5+6,HV=3,K=4/bf16/precise/per=channel/seed=1"}) {
    const Case whole = parse_id(id);
    const Problem& problem = whole.problem;
    const Tensors inputs = make_inputs(whole);
    const Backend& backend = registry.get("oracle.f64");
    const Tensors outputs = outputs_of(backend, problem, inputs);
    for (const Part& part : choose_parts(problem, 1, 1 << 20)) {
      const Tensors alone = outputs_of(backend, part_problem(problem, part), part_inputs(problem, part, inputs));
      const Tensors cut = part_outputs(problem, part, outputs);
      for (const TensorSpec& spec : op_info(problem.op).outputs(problem))
        EXPECT_TRUE(bitwise_equal(get(cut, spec.name), get(alone, spec.name)))
            << id << " " << spec.name << " sequence " << part.sequence << " head " << part.head;
    }
  }
}

TEST(Slice, says_where_an_element_of_a_part_is_in_the_whole) {
  const Problem p = parse_id("gdn/fwd/len=70+0+33,HK=2,HV=4,K=16,V=32/bf16/seed=3").problem;
  using Index = std::vector<std::int64_t>;
  EXPECT_EQ(whole_index(p, {2, 3}, "o", {5, 0, 9}), (Index{75, 3, 9}));
  EXPECT_EQ(whole_index(p, {2, 3}, "final_state", {0, 0, 7, 9}), (Index{2, 3, 7, 9}));
}

TEST(Slice, chooses_the_corners_first_stays_within_the_budget_and_skips_empty_sequences) {
  Problem p;
  p.lengths = {100, 0, 50, 100};
  p.HK = 2, p.HV = 4;
  EXPECT_EQ(choose_parts(p, 1, 1 << 20).size(), 12U);
  const auto two = choose_parts(p, 1, 200);
  ASSERT_EQ(two.size(), 2U);
  EXPECT_EQ(two[0], (Part{0, 0}));
  EXPECT_EQ(two[1], (Part{3, 3}));
  EXPECT_EQ(choose_parts(p, 1, 1).size(), 1U);
  EXPECT_EQ(choose_parts(p, 7, 400), choose_parts(p, 7, 400));
  p.lengths = {0};
  EXPECT_TRUE(choose_parts(p, 1, 10).empty());
}

}  // namespace
}  // namespace deltagauge::validate
