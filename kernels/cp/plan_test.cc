// Plans: segments, sources and refusals.
#include "kernels/cp/plan.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "core/error.h"
#include "kernels/cp/tables.h"

namespace deltagauge::kernels::cp {
namespace {

using Ends = std::vector<std::int64_t>;

std::string refusal(const Ends& cu_seqlens, const FragmentTable& table, std::int64_t segment = 0) {
  try {
    plan(cu_seqlens, table, segment);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Plan, zigzag_cuts_fragments_at_documents_and_names_the_slots_of_each_entry_state) {
  const Plan p = plan(Ends{0, 40, 232, 384}, {{{0, 96}, {288, 384}}, {{96, 192}, {192, 288}}}, 0);
  ASSERT_EQ(p.world(), 2);
  EXPECT_EQ(p.ranks[0].cu_seqlens, (Ends{0, 40, 96, 192}));
  EXPECT_EQ(p.ranks[1].cu_seqlens, (Ends{0, 96, 136, 192}));
  const auto& zero = p.ranks[0].forward;
  const auto& one = p.ranks[1].forward;
  EXPECT_EQ(zero.published, (Ends{1}));  // document 1's first piece
  EXPECT_EQ(one.published, (Ends{2}));   // document 2's first piece
  EXPECT_EQ(zero.sources[0].kind, Source::Kind::edge);
  EXPECT_EQ(zero.sources[1].kind, Source::Kind::edge);
  EXPECT_EQ(zero.sources[2].slots, (std::vector<Slot>{{1, 0}}));
  EXPECT_EQ(one.sources[0].slots, (std::vector<Slot>{{0, 0}}));
  EXPECT_EQ(one.sources[1].kind, Source::Kind::neighbour);
  EXPECT_EQ(one.sources[2].kind, Source::Kind::edge);
  EXPECT_TRUE(p.ranks[0].segments[2].ends);
  EXPECT_FALSE(p.ranks[0].segments[1].ends);
}

TEST(Plan, the_reverse_walk_visits_later_pieces_in_falling_token_order) {
  const Plan p = plan(Ends{0, 300}, {{{0, 100}}, {{100, 200}}, {{200, 300}}}, 0);
  EXPECT_EQ(p.ranks[0].reverse.sources[0].slots, (std::vector<Slot>{{2, 0}, {1, 0}}));
  EXPECT_EQ(p.ranks[2].reverse.sources[0].kind, Source::Kind::edge);
  EXPECT_TRUE(p.ranks[0].reverse.published.empty());
  EXPECT_TRUE(p.ranks[2].forward.published.empty());
}

TEST(Plan, canonical_segments_are_counted_from_the_start_of_each_document) {
  const Plan p = plan(Ends{0, 100, 300}, {{{0, 228}}, {{228, 300}}}, 64);
  EXPECT_EQ(p.ranks[0].cu_seqlens, (Ends{0, 64, 100, 164, 228}));
  EXPECT_EQ(p.ranks[0].segments[3].canonical, 1);
  EXPECT_EQ(p.ranks[1].segments[0].canonical, 2);
  EXPECT_TRUE(canonical(p));
  EXPECT_FALSE(canonical(plan(Ends{0, 100, 300}, {{{0, 227}}, {{227, 300}}}, 64)));
  EXPECT_EQ(p.ranks[1].forward.sources[0].slots, (std::vector<Slot>{{0, 0}, {0, 1}}));
  EXPECT_EQ(p.ranks[1].forward.sources[1].kind, Source::Kind::neighbour);
}

TEST(Plan, fragments_listed_against_token_order_fold_instead_of_stepping_on) {
  const Plan p = plan(Ends{0, 128}, {{{64, 128}, {0, 64}}}, 0);
  EXPECT_EQ(p.ranks[0].forward.published, (Ends{1}));
  EXPECT_EQ(p.ranks[0].forward.sources[0].slots, (std::vector<Slot>{{0, 0}}));
}

TEST(Plan, a_document_without_tokens_becomes_an_empty_segment_of_rank_zero) {
  const Plan p = plan(Ends{0, 0, 10, 10}, {{}, {{0, 10}}}, 0);
  ASSERT_EQ(p.ranks[0].segments.size(), 2u);
  EXPECT_EQ(p.ranks[0].segments[1].document, 2);
  EXPECT_TRUE(p.ranks[0].segments[1].starts && p.ranks[0].segments[1].ends);
}

TEST(Plan, refuses_tables_that_do_not_own_every_token_once_and_says_which) {
  EXPECT_EQ(
      refusal({0, 40, 100}, {{{0, 50}}, {{49, 100}}}),
      "cp plan: token 49 (document 1, its token 9): expected one owner, got fragment 0 of rank 0 and fragment 0 of rank 1");
  EXPECT_EQ(refusal({0, 40, 100}, {{{0, 50}}, {{51, 100}}}),
            "cp plan: token 50 (document 1, its token 10): expected one owner, got none");
  EXPECT_EQ(refusal({0, 40, 100}, {{{0, 50}}, {{50, 99}}}),
            "cp plan: token 99 (document 1, its token 59): expected one owner, got none");
  EXPECT_EQ(refusal({0, 40}, {{{0, 50}}}), "cp plan: fragment 0 of rank 0: expected 0 <= first < end <= 40, got [0, 50)");
  EXPECT_EQ(refusal({0, 40}, {{{0, 40}, {7, 7}}}),
            "cp plan: fragment 1 of rank 0: expected 0 <= first < end <= 40, got [7, 7)");
  EXPECT_EQ(refusal({0, 40}, {}), "cp plan: fragment table: expected at least one rank, got none");
  EXPECT_EQ(refusal({0, 40, 30}, {{{0, 30}}}), "cp plan: cu_seqlens[2]: expected at least 40, got 30");
  EXPECT_EQ(refusal({1, 40}, {{{0, 40}}}), "cp plan: cu_seqlens: expected to start at 0, got 1");
  EXPECT_EQ(refusal({0, 40}, {{{0, 40}}}, 100),
            "cp plan: segment: expected 0 or a multiple of 64 up to 2147483584, got 100");
  EXPECT_EQ(refusal({0, 40}, {{{0, 40}}}, 9223372036854775744),
            "cp plan: segment: expected 0 or a multiple of 64 up to 2147483584, got 9223372036854775744");
  EXPECT_EQ(plan(Ends{0, 40}, {{{0, 40}}}, kMostSegment).ranks[0].segments.size(), 1u);
  EXPECT_EQ(refusal({0, 1LL << 31}, {{{0, 1LL << 31}}}),
            "cp plan: cu_seqlens: expected at most 2147483647 tokens, got 2147483648");
}

TEST(Tables, every_kind_tiles_every_stream_for_every_world_and_alignment) {
  for (const Ends& ends : {Ends{0, 40, 232, 384}, Ends{0, 0, 1, 1}, Ends{0, 1000}, Ends{0, 0}, Ends{0, 3, 3, 5, 70}})
    for (std::int64_t world : {1, 2, 3, 4, 8})
      for (std::int64_t segment : {-1, 0, 64, 128})
        for (const TableKind& kind : table_kinds()) {
          const auto table = make_table(kind.name, {ends, world, segment, 7});
          const Plan p = plan(ends, table, segment < 0 ? 64 : segment);
          EXPECT_EQ(p.world(), world);
          EXPECT_TRUE(canonical(p) || (segment < 0 && !kind.documents)) << kind.name;
          std::int64_t terminals = 0;
          for (const RankPlan& rank : p.ranks)
            for (const Segment& s : rank.segments) terminals += s.ends;
          EXPECT_EQ(terminals, static_cast<std::int64_t>(ends.size()) - 1) << kind.name;
        }
}

TEST(Tables, refuse_more_ranks_and_tokens_than_they_can_count) {
  const auto refused = [](const Ends& ends, std::int64_t world) -> std::string {
    try {
      make_table("zigzag", {ends, world, -1, 0});
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  for (const std::int64_t world : {std::int64_t{0}, kMostRanks + 1, std::numeric_limits<std::int64_t>::max()})
    EXPECT_EQ(refused({0, 40}, world), "fragment table: expected 1 to 65536 ranks, got " + std::to_string(world));
  EXPECT_EQ(refused({0, 1LL << 31}, 2), "fragment table: cu_seqlens: expected at most 2147483647 tokens, got 2147483648");
  EXPECT_EQ(make_table("zigzag", {Ends{0, kMostTokens}, kMostRanks, -1, 0}).size(), 65536u);
}

TEST(Tables, documents_go_longest_first_to_the_rank_with_the_fewest_tokens) {
  const Ends ends{0, 10, 40, 60};
  EXPECT_EQ(make_table("documents", {ends, 2, -1, 0}), (FragmentTable{{{10, 40}}, {{40, 60}, {0, 10}}}));
}

}  // namespace
}  // namespace deltagauge::kernels::cp
