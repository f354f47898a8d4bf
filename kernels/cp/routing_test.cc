// Routing: padded tensors, and the halo of the short convolution.
#include "kernels/cp/routing.h"

#include <gtest/gtest.h>

#include <string>

#include "core/error.h"
#include "kernels/cp/tables.h"

namespace deltagauge::kernels::cp {
namespace {

using Ends = std::vector<std::int64_t>;

std::vector<std::int64_t> ints(const Tensor& t) {
  const auto values = t.as<std::int32_t>();
  return {values.begin(), values.end()};
}

TEST(Routing, layouts_within_the_same_caps_give_tensors_of_the_same_shape) {
  const Caps caps{8, 3, 4, 200, 3};
  const Plan a = plan(Ends{0, 100, 200}, make_table("contiguous", {Ends{0, 100, 200}, 2, -1, 0}), 64);
  const Plan b = plan(Ends{0, 200}, make_table("zigzag", {Ends{0, 200}, 2, -1, 0}), 64);
  for (std::int64_t rank : {0, 1}) {
    const Routing ra = routing(a, rank, caps), rb = routing(b, rank, caps);
    EXPECT_EQ(ra.cu_seqlens.shape(), rb.cu_seqlens.shape());
    EXPECT_EQ(ra.forward.fold.shape(), rb.forward.fold.shape());
    EXPECT_EQ(ra.forward.published.shape(), rb.forward.published.shape());
    EXPECT_EQ(ra.reverse.source.shape(), rb.reverse.source.shape());
    EXPECT_EQ(ra.history.shape(), rb.history.shape());
    EXPECT_EQ(ra.tails.shape(), rb.tails.shape());
  }
}

TEST(Routing, numbers_past_the_last_of_their_kind_stand_for_nothing) {
  const Plan p = plan(Ends{0, 40, 232, 384}, {{{0, 96}, {288, 384}}, {{96, 192}, {192, 288}}}, 0);
  const Routing r = routing(p, 0, {4, 2, 2, 200, 0});
  EXPECT_EQ(ints(r.cu_seqlens), (Ends{0, 40, 96, 192, 192}));
  EXPECT_EQ(ints(r.document), (Ends{0, 1, 2, -1}));
  EXPECT_EQ(ints(r.terminal), (Ends{1, 0, 1, 0}));
  EXPECT_EQ(ints(r.forward.published), (Ends{1, 4}));
  EXPECT_EQ(ints(r.forward.source), (Ends{2, 2, 1, 2}));            // edge, edge, the fold of fragment 1, padding
  EXPECT_EQ(ints(r.forward.fold), (Ends{4, 4, 4, 4, 2, 4, 4, 4}));  // fragment 1: slot 0 of rank 1
}

TEST(Routing, refuses_a_plan_that_passes_a_cap_and_says_which) {
  const Plan p = plan(Ends{0, 40, 232}, {{{0, 96}}, {{96, 232}}}, 0);
  const auto refusal = [&](Caps caps, std::int64_t rank) -> std::string {
    try {
      routing(p, rank, caps);
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refusal({1, 1, 1, 136, 0}, 0), "cp routing: segments of rank 0: expected at most 1, got 2");
  EXPECT_EQ(refusal({2, 1, 0, 136, 0}, 0), "cp routing: slots of rank 0: expected at most 0, got 1");
  EXPECT_EQ(refusal({2, 1, 1, 135, 0}, 0), "cp routing: rows of rank 1: expected at most 135, got 136");
  EXPECT_EQ(refusal({2, 1, 1, 136, 0}, 2), "cp routing: rank: expected 0 .. 1, got 2");
  EXPECT_EQ(refusal(caps_of(p), 1), "accepted");
}

// The global token behind each place of a segment's history, through tails and history; -1: zeros.
Ends history_of(const Plan& p, std::int64_t rank, std::int64_t segment, const Caps& caps) {
  std::vector<Ends> tails;  // by rank * fragments + fragment
  for (std::int64_t r = 0; r < p.world(); ++r) {
    const Routing from = routing(p, r, caps);
    const Ends rows = ints(from.tails);
    Ends tokens;
    for (const Fragment& f : p.ranks[static_cast<std::size_t>(r)].fragments)
      for (std::int64_t t = f.first; t < f.end; ++t) tokens.push_back(t);
    for (std::int64_t row : rows) tails.push_back({row == caps.rows ? -1 : tokens[static_cast<std::size_t>(row)]});
  }
  const Ends all = ints(routing(p, rank, caps).history);
  Ends found;
  for (std::int64_t j = 0; j < caps.history; ++j) {
    const auto at = static_cast<std::size_t>(all[static_cast<std::size_t>(segment * caps.history + j)]);
    found.push_back(at == tails.size() ? -1 : tails[at][0]);
  }
  return found;
}

TEST(Routing, the_history_of_a_cut_document_crosses_ranks_and_stops_at_the_documents_start) {
  const Plan p = plan(Ends{0, 37, 88, 128}, {{{0, 64}}, {{64, 128}}}, 0);  // the second document straddles the cut
  EXPECT_EQ(history_of(p, 1, 0, caps_of(p, 3)), (Ends{61, 62, 63}));
  EXPECT_EQ(history_of(p, 1, 1, caps_of(p, 3)), (Ends{-1, -1, -1}));  // a document's first tokens see zeros
  const Plan near = plan(Ends{0, 37, 88, 128}, {{{0, 38}}, {{38, 128}}}, 0);
  EXPECT_EQ(history_of(near, 1, 0, caps_of(near, 3)), (Ends{-1, -1, 37}));
}

TEST(Routing, the_history_gathers_fragments_shorter_than_itself) {
  const Plan p = plan(Ends{0, 20}, {{{0, 9}, {10, 11}}, {{9, 10}, {11, 20}}}, 0);
  EXPECT_EQ(history_of(p, 1, 1, caps_of(p, 3)), (Ends{8, 9, 10}));
  EXPECT_EQ(history_of(p, 0, 1, caps_of(p, 3)), (Ends{7, 8, 9}));
}

TEST(Routing, the_widest_caps_hold_both_plans) {
  const Plan a = plan(Ends{0, 20}, {{{0, 9}, {10, 11}}, {{9, 10}, {11, 20}}}, 0),
             b = plan(Ends{0, 300}, {{{0, 300}}, {}}, 64);
  const Caps caps = widest(caps_of(a, 3), caps_of(b));
  EXPECT_EQ(caps.history, 3);
  for (const Plan* p : {&a, &b}) EXPECT_NO_THROW(routing(*p, 0, caps));
  EXPECT_THROW(routing(a, 0, caps_of(b)), Error);
  EXPECT_THROW(routing(b, 0, caps_of(a)), Error);
}

TEST(Routing, refuses_caps_whose_numbers_int32_cannot_hold) {
  const Plan p = plan(Ends{0, 20}, {{{0, 9}}, {{9, 20}}}, 0);
  for (const Caps& caps :
       {Caps{9, 9, std::int64_t{1} << 30, 20, 0}, Caps{9, std::int64_t{1} << 62, 9, 20, 0}, Caps{9, 1 << 20, 9, 20, 1 << 12},
        Caps{std::int64_t{1} << 31, 9, 9, 20, 0}, Caps{9, 9, 9, std::int64_t{1} << 31, 0}})
    EXPECT_THROW(routing(p, 0, caps), Error) << caps.segments << " " << caps.fragments << " " << caps.slots;
}

}  // namespace
}  // namespace deltagauge::kernels::cp
