// Every degree gives the bits of the op without ranks, between intact guard bands.
#include "validate/cp/degree_backend.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/error.h"
#include "core/inputs.h"
#include "reference/staging.h"
#include "validate/run.h"

namespace deltagauge::validate::cp {
namespace {

std::shared_ptr<const StagedOp> op(std::string_view staging) { return reference_op(reference::staging(staging)); }

TEST(DegreeBackend, every_degree_gives_the_bits_of_the_whole_with_ranks_to_spare_too) {
  Registry registry;
  add_cpu_backends(registry);
  for (const char* id : {"gdn/fwd/len=70+0+130+1,HK=1,HV=2,K=16,V=8,cap=220/bf16/gate=mild/h0=normal=1/seed=3",
                         "gdn/fwd/len=66x3,HK=1,HV=2,K=16,V=8/bf16/layout=dense/l2norm=on/state=bf16/h0=normal=1/seed=3",
                         "gdn/fwd/len=90,HK=1,HV=1,K=16,V=16/f16/final=off/seed=3",
                         "gdn/fwd/len=70+9,HK=1,HV=2,K=16,V=8/bf16/gate=model/raw_gate=on/l2norm=on/h0=normal=1/seed=3",
                         "gdn/fwd/len=0x2,HK=1,HV=1,K=16,V=16/bf16/h0=normal=1/seed=3"})
    for (const char* staging : {"chunk64.io", "chunk64.f64", "chunk_sm80.plain"}) {
      const Case c = parse_id(id);
      const Tensors inputs = make_inputs(c);
      const auto whole = registry.get("reference.as_kernel." + std::string(staging)).plan(c.problem, inputs, {});
      whole->run();
      for (const std::int64_t degree : {1, 2, 3, 8}) {
        const std::string where = std::string(id) + " " + staging + " degree " + std::to_string(degree);
        const auto plan = DegreeBackend("sharded", op(staging), degree).plan(c.problem, inputs, {});
        plan->run();
        EXPECT_EQ(plan->audit(), std::vector<std::string>{}) << where;
        const Tensors got = plan->outputs(), want = whole->outputs();
        EXPECT_EQ(got.size(), want.size()) << where;
        for (const auto& [name, tensor] : want) EXPECT_TRUE(bitwise_equal(get(got, name), tensor)) << where << " " << name;
      }
    }
}

TEST(DegreeBackend, degrees_are_named_after_the_backend_and_there_are_none_without_an_op) {
  std::vector<std::string> got;
  for (const auto& backend : degrees_of("one", op("chunk64.io")))
    got.push_back(std::string(backend->name()) + ": " + std::string(backend->summary()));
  EXPECT_EQ(got, (std::vector<std::string>{"one.cp1: whole documents over 1 rank", "one.cp2: whole documents over 2 ranks",
                                           "one.cp3: whole documents over 3 ranks"}));
  for (const char* staging : {"recurrent.f32", "chunk16.io", "l2norm.f32"})
    EXPECT_TRUE(degrees_of("one", op(staging)).empty()) << staging;
}

TEST(DegreeBackend, refuses_what_the_op_does_not_take) {
  const DegreeBackend backend("sharded", op("chunk_sm80.plain"), 2);
  for (const auto& [id, reason] :
       {std::pair{"gdn/fwd/len=9x2,K=16,V=8/bf16/h0=zero/slots=3/seed=1", "slots: expected no state pool, got 3 slots"},
        {"gdn/fwd/len=9x2,K=16,V=8/f32/seed=1", "io: expected bf16 or f16, got f32"},
        {"gate/fwd/len=9,HV=1/f32/seed=1", "op: expected gdn, got gate"}}) {
    const Problem problem = parse_id(id).problem;
    EXPECT_EQ(backend.unsupported(problem).value_or(""), reason);
    EXPECT_THROW(backend.plan(problem, {}, {}), Error);
  }
}

}  // namespace
}  // namespace deltagauge::validate::cp
