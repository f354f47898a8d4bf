// Marks become spans in the order in which they begin, nested as they are, and only where a row is recorded.
#include "validate/mark.h"

#include <gtest/gtest.h>

#include <thread>

namespace deltagauge::validate {
namespace {

TEST(Mark, becomes_a_span_inside_those_that_are_open) {
  Recording recording(true);
  {
    Mark replay("replay");
    { const Mark load("load"); }
    { const Mark judge("judge"); }
    replay.span()->active_tokens = 7;
  }
  { const Mark capture("capture"); }
  const auto spans = recording.take();
  ASSERT_EQ(spans.size(), 4u);
  const char* names[] = {"replay", "load", "judge", "capture"};
  const std::int64_t depths[] = {0, 1, 1, 0};
  for (std::size_t i = 0; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].name, names[i]);
    EXPECT_EQ(spans[i].depth, depths[i]) << names[i];
    EXPECT_GE(spans[i].seconds, 0) << names[i];
    if (i) {
      EXPECT_GE(spans[i].start, spans[i - 1].start) << names[i];
    }
  }
  EXPECT_LE(spans[2].start + spans[2].seconds, spans[0].start + spans[0].seconds);
  EXPECT_EQ(spans[0].active_tokens, 7);
}

TEST(Mark, is_kept_by_the_innermost_recording_of_its_own_thread_and_by_none_that_is_off) {
  Mark before("before");
  EXPECT_FALSE(before.span());
  Recording outer(true);
  {
    Recording off(false);
    Mark unseen("unseen");
    EXPECT_FALSE(unseen.span());
  }
  std::thread([] { EXPECT_FALSE(Mark("of another thread").span()); }).join();
  { const Mark seen("seen"); }
  const auto spans = outer.take();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].name, "seen");
}

}  // namespace
}  // namespace deltagauge::validate
