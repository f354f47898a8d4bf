// Layouts are of their class for every seed, and the walk reaches every ordered pair in the fewest steps.
#include "validate/replay/layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>

namespace deltagauge::validate {
namespace {

Problem capacity(const char* id) { return parse_id(id).problem; }

TEST(Walk, takes_every_ordered_pair_of_classes_once) {
  for (const std::uint64_t seed : {0, 1, 2, 99}) {
    const auto steps = walk(seed);
    ASSERT_EQ(steps.size(), 82u);
    EXPECT_EQ(steps.front(), LayoutClass::full);
    EXPECT_EQ(steps.back(), LayoutClass::full);
    std::set<std::pair<LayoutClass, LayoutClass>> pairs;
    for (std::size_t i = 1; i < steps.size(); ++i) pairs.insert({steps[i - 1], steps[i]});
    EXPECT_EQ(pairs.size(), 81u) << seed;
  }
  EXPECT_EQ(walk(5), walk(5));
  EXPECT_NE(walk(5), walk(6));
}

void expect_class(LayoutClass which, const Problem& p, std::int64_t T) {
  const auto& l = p.lengths;
  const auto empty = static_cast<std::size_t>(std::count(l.begin(), l.end(), 0));
  const std::int64_t end = p.tokens();
  switch (which) {
    case LayoutClass::full:
      EXPECT_TRUE(empty == 0 && end == T);
      break;
    case LayoutClass::partial:
      EXPECT_TRUE(empty == 0 && end < T);
      break;
    case LayoutClass::one_token:
      EXPECT_EQ(static_cast<std::size_t>(std::count(l.begin(), l.end(), 1)), l.size());
      break;
    case LayoutClass::empty_head:
      EXPECT_TRUE(empty == 1 && l.front() == 0);
      break;
    case LayoutClass::empty_middle:
      EXPECT_TRUE(empty == 1 && l.front() > 0 && l.back() > 0);
      break;
    case LayoutClass::empty_tail:
      EXPECT_TRUE(empty == 1 && l.back() == 0 && end == T);
      break;
    case LayoutClass::fewer:
      EXPECT_TRUE(empty >= 2 && empty < l.size() && end < T);
      EXPECT_TRUE(std::all_of(l.end() - static_cast<std::ptrdiff_t>(empty), l.end(), [](auto x) { return x == 0; }));
      break;
    case LayoutClass::all_empty:
      EXPECT_EQ(empty, l.size());
      break;
    case LayoutClass::one_token_tail:
      EXPECT_TRUE(empty == 0 && l.back() % p.chunk == 1 && end < T);
      break;
  }
}

TEST(Layouts, are_of_their_class_for_every_seed_and_capacity) {
  for (const char* id : {"gdn/fwd/len=64x4/h0=zero/slots=9", "gdn/fwd/len=1+1+3", "l2norm/fwd/len=9+9+0+7,cap=500"}) {
    const Problem p = capacity(id);
    ASSERT_FALSE(no_layouts(p));
    for (std::size_t c = 0; c < layout_classes().size(); ++c)
      for (std::uint64_t seed = 0; seed < 50; ++seed) {
        const auto which = static_cast<LayoutClass>(c);
        const Problem layout = layout_of(p, which, seed);
        EXPECT_EQ(layout.rows(), p.rows());
        EXPECT_EQ(layout.sequences(), p.sequences());
        EXPECT_EQ(layout, layout_of(p, which, seed));
        SCOPED_TRACE(std::string(name(which)) + " " + in_words(layout));
        expect_class(which, layout, p.rows());
      }
  }
}

TEST(Layouts, of_a_pool_draw_slots_in_any_order_none_and_unread) {
  const Problem p = capacity("gdn/fwd/len=64x4/h0=zero/slots=9");
  int holes = 0, out_of_order = 0, unread = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const Problem layout = layout_of(p, LayoutClass::full, seed);
    const auto slots = layout.state_indices();
    const auto has = layout.has_initial_state();
    holes += std::count(slots.begin(), slots.end(), -1) > 0;
    out_of_order += !std::is_sorted(slots.begin(), slots.end());
    unread += std::count(has.begin(), has.end(), false) > 0;
  }
  for (const int count : {holes, out_of_order, unread}) EXPECT_TRUE(count > 10 && count < 50) << count;
}

TEST(Layouts, of_a_part_use_that_much_of_the_capacity) {
  const Problem p = capacity("gdn/fwd/len=100+30+6");
  for (const double part : {1., 0.5, 0.25})
    EXPECT_EQ(active_layout(p, part).tokens(), static_cast<std::int64_t>(136 * part));
  EXPECT_EQ(active_layout(p, 1e-9).lengths, (std::vector<std::int64_t>{1, 0, 0}));
}

TEST(Layouts, say_why_a_capacity_has_none) {
  EXPECT_EQ(no_layouts(capacity("gdn/fwd/len=9+9")), "len: expected at least 3 sequences, got 2");
  EXPECT_EQ(no_layouts(capacity("gdn/fwd/len=1x3")), "len: expected at least 5 rows for 3 sequences, got 3");
  EXPECT_TRUE(no_layouts(capacity("gdn/fwd/len=9x3/layout=dense")));
}

}  // namespace
}  // namespace deltagauge::validate
