// The state pool in every form of the reference: the bits of a run whose states were gathered before and scattered after.
#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <vector>

#include "core/inputs.h"
#include "reference/gdn.h"

namespace deltagauge::reference {
namespace {

constexpr const char* kCases[] = {
    "gdn/fwd/len=9+0+5+70+1+3,HK=1,HV=2,K=8,V=4,cap=100/bf16/h0=normal=1/slots=11/slot_pad=3/idx=holes=5/has=mixed/seed=2",
    "gdn/fwd/len=9+0+5+70+0+3,HK=2,HV=2,K=8,V=8/f16/h0=normal=1/state=bf16/slots=7/idx=permuted=1/has=0+0+1+0+1+1/seed=3"};

using Form = std::function<Tensors(const Problem&, const Tensors&)>;

TEST(Pool, every_form_gives_the_bits_of_gathered_states) {
  std::vector<std::pair<std::string, Form>> forms{
      {"recurrent", [](const Problem& p, const Tensors& in) { return gdn_recurrent(p, in, Precision::f32); }},
      {"textbook", [](const Problem& p, const Tensors& in) { return gdn_textbook(p, in, 16, Precision::f32, false); }}};
  for (const char* name : {"recurrent.f64", "chunk64.f32", "chunk64.io.tc", "chunk_sm80.split"})
    forms.emplace_back(name, [name](const Problem& p, const Tensors& in) { return run(p, in, staging(name), false); });
  for (const char* id : kCases) {
    const Case c = parse_id(id);
    const Tensors inputs = make_inputs(c);
    const auto slots = c.problem.state_indices();
    const auto has = c.problem.has_initial_state();
    Problem plain = c.problem;
    plain.slots = plain.slot_pad = 0;
    plain.idx = "iota", plain.has = "on";
    Tensors gathered = inputs;
    Tensor& states = gathered["initial_state"] = Tensor(plain.state, {plain.sequences(), plain.HV, plain.V, plain.K});
    const std::int64_t size = plain.HV * plain.V * plain.K;
    for (std::size_t n = 0; n < slots.size(); ++n)
      for (std::int64_t i = 0; i < size && slots[n] > 0 && has[n]; ++i)
        states.store(static_cast<std::int64_t>(n) * size + i, get(inputs, "initial_state").load(slots[n] * size + i));
    for (const auto& [name, form] : forms) {
      const Tensors got = form(c.problem, inputs), want = form(plain, gathered);
      for (std::size_t n = 0; n < slots.size(); ++n) {
        const std::int64_t first = c.problem.offsets()[n], length = c.problem.lengths[n],
                           place = static_cast<std::int64_t>(n);
        const Tensor o = rows(get(got, "o"), first, length);
        if (slots[n] <= 0) {
          EXPECT_EQ(to_f64(o), std::vector<double>(static_cast<std::size_t>(o.numel()), 0)) << id << " " << name;
          continue;
        }
        EXPECT_TRUE(bitwise_equal(o, rows(get(want, "o"), first, length))) << id << " " << name << " " << n;
        EXPECT_TRUE(bitwise_equal(rows(get(got, "final_state"), slots[n], 1), rows(get(want, "final_state"), place, 1)))
            << id << " " << name << " " << n;
      }
    }
  }
}

}  // namespace
}  // namespace deltagauge::reference
