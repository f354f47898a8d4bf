// The state pool: ids both ways, which slots the sequences get, what is drawn into them, what is refused.
#include "core/pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/inputs.h"
#include "core/op.h"

namespace deltagauge {
namespace {

Problem pooled(const std::string& rest) {
  return parse_id("gdn/fwd/len=3+0+2+4+1,HV=2,K=4,V=2/f32/h0=normal=1" + (rest.empty() ? "" : "/" + rest)).problem;
}
using Slots = std::vector<std::int64_t>;

TEST(Pool, ids_are_exact_both_ways) {
  for (const char* rest : {"slots=9", "slots=6/slot_pad=5", "slots=9/idx=permuted", "slots=9/idx=permuted=7/has=mixed",
                           "slots=9/idx=holes=3/has=off", "slots=9/idx=3+-1+0+1+8/has=1+0+1+0+0"}) {
    const Case c = parse_id("gdn/fwd/len=3+0+2+4+1,HV=2,K=4,V=2/f32/h0=normal=1/" + std::string(rest));
    EXPECT_EQ(parse_id(to_id(c)), c) << rest;
    EXPECT_NE(to_id(c).find(rest), std::string::npos) << to_id(c);
  }
  EXPECT_EQ(pooled("slots=9/idx=permuted=0").idx, "permuted");
  EXPECT_EQ(pooled("slots=0"), pooled(""));
}

TEST(Pool, gives_every_sequence_a_slot_of_its_own_or_none) {
  EXPECT_EQ(pooled("slots=9").state_indices(), (Slots{1, 2, 3, 4, 5}));
  EXPECT_EQ(pooled("slots=9/idx=3+-1+0+1+8").state_indices(), (Slots{3, -1, 0, 1, 8}));
  for (const char* idx : {"permuted", "permuted=1", "permuted=2", "holes=1"}) {
    Slots slots = pooled("slots=9/idx=" + std::string(idx)).state_indices();
    std::sort(slots.begin(), slots.end());
    EXPECT_GE(slots.front(), -1) << idx;
    EXPECT_LT(slots.back(), 9) << idx;
    std::erase_if(slots, [](std::int64_t slot) { return slot <= 0; });
    EXPECT_EQ(std::adjacent_find(slots.begin(), slots.end()), slots.end()) << idx;
  }
  const Slots holes = pooled("slots=9/idx=holes").state_indices();
  EXPECT_EQ(std::count(holes.begin(), holes.end(), -1), 1);
  EXPECT_EQ(std::count(holes.begin(), holes.end(), 0), 1);
  EXPECT_NE(pooled("slots=99/idx=permuted=1").state_indices(), pooled("slots=99/idx=permuted=2").state_indices());
  EXPECT_EQ(pooled("slots=9/has=mixed").has_initial_state(), (std::vector<bool>{true, true, false, false, true}));
  EXPECT_TRUE(pooled("").state_indices().empty());
}

TEST(Pool, a_case_cut_to_fewer_sequences_keeps_their_slots_and_states) {
  const std::string sizes = ",HV=2,K=4,V=2", rest = "/f32/h0=normal=1/slots=9/idx=permuted=4/has=mixed/seed=3";
  const Case whole = parse_id("gdn/fwd/len=3+0+2+4+1" + sizes + rest);
  const Case some = parse_id("gdn/fwd/len=4+1" + sizes + ",ids=3+4" + rest);
  const Slots all = whole.problem.state_indices();
  EXPECT_EQ(some.problem.state_indices(), (Slots{all[3], all[4]}));
  const Tensors before = make_inputs(whole), after = make_inputs(some);
  EXPECT_TRUE(bitwise_equal(rows(get(before, "initial_state"), all[4], 1), rows(get(after, "initial_state"), all[4], 1)));
}

TEST(Pool, inputs_hold_nan_wherever_no_sequence_may_read) {
  const Case c = parse_id("gdn/fwd/len=3+0+2+4+1,HV=2,K=4,V=2/f32/h0=normal=1/slots=9/idx=3+-1+0+1+8/has=1+1+1+0+1");
  const Tensors inputs = make_inputs(c);
  const Tensor& pool = get(inputs, "initial_state");
  EXPECT_EQ(pool.shape(), (Shape{9, 2, 2, 4}));
  for (std::int64_t slot = 0; slot < 9; ++slot)
    EXPECT_EQ(std::isnan(pool.at({slot, 1, 1, 3})), slot != 3 && slot != 8) << slot;
  EXPECT_EQ(to_f64(get(inputs, "state_indices")), (std::vector<double>{3, -1, 0, 1, 8}));
  EXPECT_EQ(to_f64(get(inputs, "has_initial_state")), (std::vector<double>{1, 1, 1, 0, 1}));
  EXPECT_EQ(get(inputs, "has_initial_state").dtype(), DType::boolean);
  const auto outputs = op_info("gdn").outputs(c.problem);
  EXPECT_EQ(outputs.back().in_place_of, "initial_state");
  EXPECT_EQ(outputs.back().shape, pool.shape());
  EXPECT_THROW(make_inputs(parse_id(to_id(c) + "/initial_state[3,0,0,0]=nan")), Error);
}

TEST(Pool, counts_the_slots_that_a_call_touches) {
  const auto bytes = [](const Problem& p) { return op_info("gdn").bytes(p); };
  const double state = 2 * 2 * 4 * 4;
  EXPECT_EQ(bytes(pooled("slots=9")), bytes(pooled("slots=99")));
  EXPECT_EQ(bytes(pooled("slots=9")) - bytes(pooled("slots=9/has=off")), 5 * state);
}

TEST(Pool, refuses_in_words) {
  const auto message = [](const std::string& rest) -> std::string {
    try {
      pooled(rest);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("slots=1"), "slots: expected 0 or at least 2, since slot 0 is reserved, got 1");
  EXPECT_EQ(message("slots=5"), "idx: expected an entry for sequence 4, got 4 entries");
  EXPECT_EQ(message("slots=9/idx=1+2+3+4+9"), "idx: expected slots below 9, got 9");
  EXPECT_EQ(message("slots=9/idx=1+2+3+4+2"), "idx: expected each slot once, got 2 twice");
  EXPECT_EQ(message("slots=9/idx=permutated"),
            "idx: expected iota, permuted, holes, permuted=SEED, holes=SEED or slots as in 3+-1+5, got 'permutated'");
  EXPECT_EQ(message("slots=9/has=2"), "has: expected on, off, mixed or flags as in 1+0+1, got '2'");
  EXPECT_EQ(message("has=off"), "slots: expected a pool (slots=P) beside slot_pad, idx and has, got slots=0");
  EXPECT_EQ(message("slots=9/final=off"), "slots: expected final=on, since a pool is advanced in place, got final=off");
  EXPECT_EQ(message("slots=9/h0=none"),
            "case id: axis 'h0' stands twice in 'gdn/fwd/len=3+0+2+4+1,HV=2,K=4,V=2/f32/"
            "h0=normal=1/slots=9/h0=none'");
}

}  // namespace
}  // namespace deltagauge
