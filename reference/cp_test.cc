// Summaries and their algebra.
#include "reference/cp.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/gdn.h"

namespace deltagauge::reference {
namespace {

TEST(Cp, an_empty_range_gives_the_identity) {
  const Case c = parse_id("gdn/fwd/len=70,HK=1,HV=2,K=8,V=4/bf16/seed=1");
  const CpPrepared prepared(c.problem, make_inputs(c), staging("chunk64.f32"));
  const Tensor map = prepared.summarise(std::vector<RowRange>{{64, 64}});
  ASSERT_EQ(map.shape(), (Shape{1, 2, 12, 8}));
  for (std::int64_t h = 0; h < 2; ++h)
    for (std::int64_t i = 0; i < 12; ++i)
      for (std::int64_t j = 0; j < 8; ++j) EXPECT_EQ(map.at({0, h, i, j}), i - 4 == j ? 1 : 0);
}

TEST(Cp, on_lattice_inputs_any_cut_folds_to_the_bits_of_the_whole) {
  for (const char* gate : {"none", "edge"}) {
    const Case c = parse_id(std::string("gdn/fwd/len=200,HK=1,HV=2,K=32,V=16/bf16/gate=") + gate +
                            "/h0=normal=1/data=lattice/scale=1/seed=3");
    const Tensors inputs = make_inputs(c);
    const Tensors want = gdn_recurrent(c.problem, inputs, Precision::f64);
    for (const char* name : {"chunk64.f32", "chunk64.f64"})
      for (std::int64_t cut : {1, 64, 130, 199}) {
        const CpPrepared prepared(c.problem, inputs, staging(name));
        const Tensor maps = prepared.summarise(std::vector<RowRange>{{0, cut}, {cut, 200}});
        Tensor states = cast(get(inputs, "initial_state"), prepared.state_dtype());
        merge_state(states, 0, 0, maps, 0);
        merge_state(states, 0, 0, maps, 1);
        EXPECT_TRUE(bitwise_equal(cast(states, c.problem.state), get(want, "final_state"))) << gate << name << cut;
      }
  }
}

TEST(Cp, a_bias_with_the_initial_state_in_it_starts_a_fold_with_the_same_bits) {
  const Case c = parse_id("gdn/fwd/len=200,HK=1,HV=2,K=16,V=24/bf16/gate=mild/h0=normal=1/seed=3");
  const Tensors inputs = make_inputs(c);
  const CpPrepared prepared(c.problem, inputs, staging("chunk_sm80.plain"));
  Tensor maps = prepared.summarise(std::vector<RowRange>{{0, 64}});
  Tensor stepped = get(inputs, "initial_state");
  merge_bias(maps, 0, stepped, 0);
  Tensor started(stepped.dtype(), stepped.shape());
  copy_bias(started, 0, maps, 0);
  const Tensor fresh = prepared.summarise(std::vector<RowRange>{{0, 64}});
  merge_state(stepped, 0, 0, fresh, 0);
  EXPECT_TRUE(bitwise_equal(started, stepped));
}

TEST(Cp, maps_are_the_same_bits_whatever_other_ranges_are_asked_for) {
  const Case c = parse_id("gdn/fwd/len=200+90,HK=1,HV=2,K=64,V=32/f16/gate=mild/seed=3");
  const CpPrepared prepared(c.problem, make_inputs(c), staging("chunk_sm80.plain"));
  const Tensor alone = prepared.summarise(std::vector<RowRange>{{64, 128}});
  const Tensor many = prepared.summarise(std::vector<RowRange>{{0, 64}, {64, 128}, {200, 290}});
  EXPECT_TRUE(bitwise_equal(alone, rows(many, 1, 1)));
}

TEST(Cp, refuses_states_and_maps_that_do_not_fit) {
  Tensor states(DType::f32, {1, 2, 4, 8}), maps(DType::f32, {1, 2, 11, 8});
  EXPECT_THROW(merge_state(states, 0, 0, maps, 0), Error);
  const Case c = parse_id("gdn/fwd/len=70,HK=1,HV=2,K=8,V=4/bf16/seed=1");
  const CpPrepared prepared(c.problem, make_inputs(c), staging("chunk64.f32"));
  EXPECT_THROW(prepared.run(Tensor(DType::f64, {1, 2, 4, 8}), false), Error);
}

}  // namespace
}  // namespace deltagauge::reference
