// The check passes what is right and names what is not.
#include "validate/cp/check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "core/inputs.h"
#include "kernels/cp/plan.h"
#include "kernels/gdn/gdn.h"
#include "validate/thresholds.h"

namespace deltagauge::validate::cp {
namespace {

constexpr const char* kOp = "reference.cp.chunk_sm80.plain";
constexpr const char* kCase = "gdn/fwd/len=250+70,HK=1,HV=2,K=16,V=16/bf16/gate=mild/h0=normal=1/seed=4";

Options quick() { return {.degrees = {3}, .segment = 64}; }

reports::Result row_of(const char* id, Options options, const char* op = kOp) {
  options.backend = op;
  Sweep sweep{"", "test", "*", {}};
  sweep.cases.emplace_back().test = parse_id(id);
  reports::Report report;
  run_cp(sweep, all_ops(), options, report);
  return report.results.at(0);
}

TEST(CpCheck, passes_every_table_and_degree_and_says_how_many_it_ran) {
  const auto row = row_of(kCase, quick());
  EXPECT_EQ(row.outcome, reports::Outcome::pass) << row.reason;
  EXPECT_EQ(row.check, "cp");
  for (const char* promise : {"documents.tables", "boundaries.tables", "anywhere.tables"})
    EXPECT_GT(row.values.at(promise), 2) << promise;
  EXPECT_GT(row.tensors.at("o").row_ratio, 0);
}

TEST(CpCheck, lattice_inputs_give_the_same_bits_wherever_the_cuts_are) {
  const auto row =
      row_of("gdn/fwd/len=200+66,HK=1,HV=2,K=16,V=16/bf16/gate=edge/h0=normal=1/data=lattice/scale=1/seed=3", quick());
  EXPECT_EQ(row.outcome, reports::Outcome::pass) << row.reason;
}

TEST(CpCheck, catches_every_planted_fault_by_bits_and_by_accuracy_and_names_stage_head_and_segment) {
  const std::map<Fault, std::string> faults{{Fault::fold_by_rank, "stage entry"},
                                            {Fault::transition_on_left, "stage transition"},
                                            {Fault::boundary_token_twice, "stage bias"},
                                            {Fault::first_decay_dropped, "stage"},
                                            {Fault::document_leak, "stage entry of head 0 in segment 0 of document"}};
  for (const auto& [fault, stage] : faults) {
    Options options = quick();
    options.fault = fault;
    options.tables = {"scattered"};
    const auto row = row_of(kCase, options);
    const auto which = static_cast<int>(fault);
    EXPECT_EQ(row.outcome, reports::Outcome::fail) << which;
    EXPECT_NE(row.reason.find("bits first differ at " + stage), std::string::npos) << which << row.reason;
    ASSERT_TRUE(row.tensors.contains("o")) << which << row.reason;
    EXPECT_GT(row.tensors.at("o").row_ratio, kRowRatio) << which;
    EXPECT_TRUE(row.repro.starts_with("deltagauge cp --case '")) << row.repro;
    EXPECT_NE(row.repro.find(" --segment 64 --degree 3 --table scattered"), std::string::npos) << row.repro;
  }
}

TEST(CpCheck, skips_what_an_op_does_not_take) {
  EXPECT_EQ(row_of("gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/f32/seed=1", {}).outcome, reports::Outcome::skip);
  EXPECT_EQ(row_of("gate/fwd/len=64,HV=1/f32/seed=1", {}).outcome, reports::Outcome::skip);
  for (const char* op : {kOp, "cuda.cp.chunk_sm80"}) {
    const auto row = row_of("gdn/fwd/len=64,HK=1,HV=1,K=64,V=64/bf16/h0=zero/slots=2/seed=1", {}, op);
    EXPECT_EQ(row.outcome, reports::Outcome::skip) << op;
    EXPECT_EQ(row.reason, "slots: expected no state pool, got 2 slots") << op;
  }
}

TEST(CpCheck, skips_what_leaves_nothing_to_compare) {
  const auto row = row_of("gdn/fwd/len=0x2,HK=1,HV=1,K=16,V=16/bf16/final=off/seed=1", {});
  EXPECT_EQ(row.outcome, reports::Outcome::skip);
  EXPECT_NE(row.reason.find("nothing to compare"), std::string::npos) << row.reason;
  EXPECT_EQ(row_of("gdn/fwd/len=0x2,HK=1,HV=1,K=16,V=16/bf16/h0=normal=1/seed=1", {}).outcome, reports::Outcome::pass);
}

TEST(CpCheck, cuda_ops_are_there_in_any_build_and_say_why_they_do_not_run) {
  const auto row = row_of(kCase, {}, "cuda.cp.chunk_sm80");
  EXPECT_EQ(row.outcome, reports::Outcome::skip);
  EXPECT_EQ(row.reason, "head sizes: expected K = V, 64 or 128, got K = 16, V = 16");
  StagedOps ops;
  add_cuda_ops(ops);
  EXPECT_EQ(static_cast<std::ptrdiff_t>(ops.size()),
            std::ranges::count(kernels::gdn::variants(), kernels::cp::kChunk, &kernels::gdn::Variant::chunk));
}

TEST(CpCheck, an_unknown_table_is_an_error_row_that_names_the_known_ones) {
  Options options;
  options.tables = {"zig-zag"};
  const auto row = row_of(kCase, options);
  EXPECT_EQ(row.outcome, reports::Outcome::error);
  EXPECT_NE(row.reason.find("contiguous zigzag documents rotated scattered, got 'zig-zag'"), std::string::npos)
      << row.reason;
}

}  // namespace
}  // namespace deltagauge::validate::cp
