// The state pool: gathering slots, running the sequences without a pool and scattering gives the same bits, and sequences
// without a slot give zero rows.
#include <gtest/gtest.h>

#include <cmath>

#include "core/inputs.h"
#include "oracle/oracle.h"

namespace deltagauge::oracle {
namespace {

constexpr const char* kCases[] = {
    "gdn/fwd/len=9+0+5+70+1+3,HK=1,HV=2,K=8,V=4,cap=100/f32/h0=normal=1/slots=11/slot_pad=3/idx=holes=5/has=mixed/seed=2",
    "gdn/fwd/len=9+0+5+70+0+3,HK=2,HV=2,K=4,V=8/bf16/h0=normal=1/state=bf16/slots=7/idx=permuted=1/has=0+0+1+0+1+1/seed=3",
    "gdn/fwd/len=4+0,K=4,V=4/bf16/h0=normal=1/slots=4/idx=0+-1/has=on"};

// One sequence without a pool, with what its slot holds.
Answer alone(const Case& c, const Tensors& inputs, std::size_t n) {
  Problem p = c.problem;
  p.lengths = {c.problem.lengths[n]};
  p.capacity = p.slots = p.slot_pad = 0;
  p.idx = "iota", p.has = "on";
  const bool reads = c.problem.has_initial_state()[n];
  Tensors own;
  for (const char* name : {"q", "k", "v", "g", "beta"})
    own[name] = rows(get(inputs, name), c.problem.offsets()[n], p.lengths[0]);
  own["initial_state"] =
      reads ? rows(get(inputs, "initial_state"), c.problem.state_indices()[n], 1) : Tensor(p.state, {1, p.HV, p.V, p.K});
  own["cu_seqlens"] = Tensor(DType::i32, {2});
  own["cu_seqlens"].store(1, static_cast<double>(p.lengths[0]));
  return answer(p, own, {.precision = Precision::dd});
}

TEST(Pool, sequences_have_the_bits_of_runs_without_a_pool) {
  for (const char* id : kCases) {
    const Case c = parse_id(id);
    const Tensors inputs = make_inputs(c);
    const Answer pooled = answer(c.problem, inputs, {.precision = Precision::dd});
    const Tensor &o = get(pooled.outputs, "o"), &pool = get(pooled.outputs, "final_state");
    ASSERT_EQ(pool.dim(0), c.problem.slots);
    std::vector<bool> owned(static_cast<std::size_t>(c.problem.slots), false);
    const auto slots = c.problem.state_indices();
    for (std::size_t n = 0; n < slots.size(); ++n) {
      const std::int64_t first = c.problem.offsets()[n], length = c.problem.lengths[n];
      if (slots[n] <= 0) {
        EXPECT_EQ(to_f64(rows(o, first, length)),
                  std::vector<double>(static_cast<std::size_t>(length * o.dim(1) * o.dim(2)), 0));
        continue;
      }
      owned[static_cast<std::size_t>(slots[n])] = true;
      const Answer one = alone(c, inputs, n);
      EXPECT_TRUE(bitwise_equal(rows(o, first, length), get(one.outputs, "o"))) << id << " sequence " << n;
      EXPECT_TRUE(bitwise_equal(rows(pool, slots[n], 1), get(one.outputs, "final_state"))) << id << " sequence " << n;
    }
    for (std::int64_t slot = 0; slot < c.problem.slots; ++slot)
      EXPECT_EQ(std::isnan(pool.at({slot, 0, 0, 0})), !owned[static_cast<std::size_t>(slot)]) << id << " slot " << slot;
  }
}

TEST(Pool, the_chunk_form_answers_it_too) {
  for (const char* id : kCases) {
    const Case c = parse_id(id);
    const Tensors inputs = make_inputs(c);
    const Answer plain = answer(c.problem, inputs, {.precision = Precision::quad});
    const Answer chunks = answer_chunkwise(c.problem, inputs, 16);
    for (const char* name : {"o", "final_state"}) {
      const Tensor &got = get(chunks.outputs, name), &want = get(plain.outputs, name);
      for (std::int64_t i = 0; i < want.numel(); ++i) {
        ASSERT_EQ(std::isnan(got.load(i)), std::isnan(want.load(i))) << id << " " << name << i;
        if (std::isnan(want.load(i))) continue;
        ASSERT_EQ(round_to(DType::f32, got.load(i)), round_to(DType::f32, want.load(i)));
      }
    }
  }
}

}  // namespace
}  // namespace deltagauge::oracle
