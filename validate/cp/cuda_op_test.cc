// Captured calls of all ranks follow other layouts in the same caps, bit for bit.
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/inputs.h"
#include "kernels/cp/tables.h"
#include "kernels/runtime/testing.h"
#include "validate/cp/sharded.h"

namespace deltagauge::validate::cp {
namespace {

class CudaOps : public kernels::runtime::GpuTest {};

TEST_F(CudaOps, a_captured_call_follows_other_documents_tables_and_inputs_bit_for_bit) {
  constexpr std::int64_t kWorld = 4;
  struct Layout {
    const char *lengths, *table;
    std::int64_t cuts, segment;
  };
  const Layout layouts[] = {{"500", "contiguous", -1, 64},       {"37+351+0+40", "zigzag", -1, 128},
                            {"1+499", "scattered", 64, 64},      {"64+64+128+200", "rotated", 128, 128},
                            {"20+64+7+1+90", "documents", 0, 0}, {"0+0", "contiguous", 0, 0},
                            {"500", "contiguous", -1, 64}};
  StagedOps ops;
  add_cuda_ops(ops);
  std::set<std::string_view> missing;  // ops that took no sizes
  for (const auto& op : ops) missing.insert(op->name());
  for (const char* sizes : {"HK=1,HV=2,K=64,V=64/bf16", "HK=1,HV=1,K=128,V=128/f16", "HK=1,HV=1,K=128,V=128/bf16"})
    for (const auto& op : ops) {
      std::vector<Case> cases;
      std::vector<kernels::cp::Plan> plans;
      kernels::cp::Caps caps;
      for (const Layout& layout : layouts) {
        cases.push_back(parse_id("gdn/fwd/len=" + std::string(layout.lengths) + "," + sizes +
                                 "/gate=mild/h0=normal=1/seed=" + std::to_string(cases.size())));
        const auto documents = documents_of(cases.back().problem);
        const auto table = kernels::cp::make_table(layout.table, {documents, kWorld, layout.cuts, 3});
        plans.push_back(kernels::cp::plan(documents, table, layout.segment));
        caps = kernels::cp::widest(caps, kernels::cp::caps_of(plans.back()));
      }
      if (const auto why = op->unsupported(cases[0].problem)) {
        if (why->starts_with("device")) missing.erase(op->name());  // another GPU than the variant's
        continue;
      }
      missing.erase(op->name());
      std::unique_ptr<Captured> captured;
      for (std::size_t i = 0; i < cases.size(); ++i) {
        const Ranks ranks = ranks_of(cases[i].problem, make_inputs(cases[i]), plans[i], caps);
        if (!captured) captured = op->capture(ranks);
        const auto want = op->ranks(ranks, true), got = captured->replay(ranks);
        for (std::size_t r = 0; r < ranks.world(); ++r) {
          const std::string where =
              std::string(op->name()) + " " + sizes + " layout " + std::to_string(i) + " rank " + std::to_string(r);
          EXPECT_TRUE(bitwise_equal(got[r].summaries, want[r].summaries)) << where;
          EXPECT_TRUE(bitwise_equal(got[r].entry, want[r].entry)) << where;
          for (const auto& [name, tensor] : want[r].run)
            EXPECT_TRUE(bitwise_equal(get(got[r].run, name), tensor)) << where << " " << name;
        }
      }
    }
  EXPECT_EQ(missing, std::set<std::string_view>{});
}

TEST_F(CudaOps, a_replay_refuses_other_caps) {
  StagedOps ops;
  add_cuda_ops(ops);
  const Case c = parse_id("gdn/fwd/len=200,HK=1,HV=1,K=64,V=64/bf16/seed=1");
  const auto documents = documents_of(c.problem);
  const auto plan = kernels::cp::plan(documents, kernels::cp::make_table("contiguous", {documents, 2, -1, 0}), 64);
  auto caps = kernels::cp::caps_of(plan);
  const auto captured = ops[0]->capture(ranks_of(c.problem, make_inputs(c), plan, caps));
  ++caps.segments;
  EXPECT_NE(kernels::runtime::error_of([&] {
              captured->replay(ranks_of(c.problem, make_inputs(c), plan, caps));
            }).find("as in the first call"),
            std::string::npos);
}

}  // namespace
}  // namespace deltagauge::validate::cp
