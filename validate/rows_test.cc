#include "validate/rows.h"

#include <gtest/gtest.h>

#include "core/error.h"

namespace deltagauge::validate {
namespace {

// Lengths 3, 0, 5 in chunks of 4; two rows past the active end.
Problem ragged() {
  Problem p;
  p.lengths = {3, 0, 5};
  p.capacity = 10;
  p.HV = 2;
  p.K = 6;
  p.V = 7;
  p.chunk = 4;
  return p;
}

std::vector<std::int64_t> judged(const Rows& rows) {
  std::vector<std::int64_t> count(static_cast<std::size_t>(rows.total), 0);
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) ++count[static_cast<std::size_t>(s.first + i * s.stride)];
  return count;
}

TEST(Rows, OutputsSplitIntoOneSeriesPerSequenceAndHeadInTheOrderOfTime) {
  const Rows rows = rows_of(ragged(), "o", {10, 2, 7});
  EXPECT_EQ(rows.width, 7);
  EXPECT_EQ(rows.total, 20);
  ASSERT_EQ(rows.series.size(), 4u);  // the empty sequence has none
  EXPECT_EQ(rows.series[3].sequence, 2);
  EXPECT_EQ(rows.series[3].head, 1);
  EXPECT_EQ(rows.series[3].first, 3 * 2 + 1);
  EXPECT_EQ(rows.series[3].stride, 2);
  EXPECT_EQ(rows.series[3].count, 5);
}

TEST(Rows, EveryActiveRowIsInOneSeriesAndNoRowPastTheEndIsInAny) {
  const auto count = judged(rows_of(ragged(), "v_new", {10, 2, 7}));
  for (std::size_t row = 0; row < count.size(); ++row) EXPECT_EQ(count[row], row < 16 ? 1 : 0) << row;
}

TEST(Rows, StatesSplitIntoValueRowsOfOneSequenceAndHead) {
  const Rows rows = rows_of(ragged(), "final_state", {3, 2, 7, 6});
  EXPECT_EQ(rows.width, 6);
  ASSERT_EQ(rows.series.size(), 6u);
  EXPECT_EQ(rows.series[5].first, 5 * 7);
  EXPECT_EQ(rows.series[5].count, 7);
  EXPECT_EQ(rows.series[5].stride, 1);
}

TEST(Rows, ChunkMatricesJudgeTheRowsOfTheirTokensOnly) {
  const Rows rows = rows_of(ragged(), "Ainv", {3, 2, 4, 4});  // chunks of 3; of 4 and 1 tokens
  const std::int64_t counts[] = {3, 3, 4, 4, 1, 1}, tokens[] = {0, 0, 3, 3, 7, 7};
  ASSERT_EQ(rows.series.size(), 6u);
  for (std::size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(rows.series[i].count, counts[i]);
    EXPECT_EQ(rows.series[i].token, tokens[i]);
  }
}

TEST(Rows, StatesBeforeChunksAreJudgedWhole) {
  const Rows rows = rows_of(ragged(), "S", {3, 2, 7, 6});
  ASSERT_EQ(rows.series.size(), 6u);
  for (const Series& s : rows.series) EXPECT_EQ(s.count, 7);
  EXPECT_EQ(rows.series[4].token, 7);
}

TEST(Rows, TensorsWithoutHeadsAreOneSeriesPerSequence) {
  const Rows rows = rows_of(ragged(), "g", {10, 2});
  EXPECT_EQ(rows.width, 2);
  EXPECT_EQ(rows.series.size(), 2u);
}

TEST(Rows, ShapesThatDoNotFitTheProblemAreRefused) {
  EXPECT_THROW(rows_of(ragged(), "o", {8, 2, 7}), Error);
  EXPECT_THROW(rows_of(ragged(), "o", {10}), Error);
  EXPECT_THROW(rows_of(ragged(), "final_state", {2, 2, 7, 6}), Error);
  EXPECT_THROW(rows_of(ragged(), "Ainv", {3, 2, 8, 8}), Error);  // chunks of 8 would be 2
  EXPECT_THROW(rows_of(ragged(), "S", {3, 2, 42}), Error);
}

}  // namespace
}  // namespace deltagauge::validate
