#include "validate/peers.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

namespace deltagauge::validate {
namespace {

std::string rejecting(DType io, std::vector<double> got, std::vector<double> want) {
  const Rows rows{2, 1, {{0, 1, 1, 0, 0, 0}}};
  std::string names;
  for (const Peer& peer : peers())
    if (rejects(peer, io, "o", from_f64(DType::f32, {1, 2}, got), from_f64(DType::f64, {1, 2}, want), rows))
      names += (names.empty() ? "" : " ") + std::string(peer.name);
  return names;
}

TEST(Peers, AcceptTheRightAnswer) { EXPECT_EQ(rejecting(DType::bf16, {1, 2}, {1, 2}), ""); }

TEST(Peers, JudgeByTheirOwnMeasures) {
  EXPECT_EQ(rejecting(DType::bf16, {1.01, 1}, {1, 1}), "FLA");              // rel-L2 0.7 %
  EXPECT_EQ(rejecting(DType::bf16, {1.025, 1}, {1, 1}), "FLA FlashInfer");  // 1.8 %, 0.025 off
  EXPECT_EQ(rejecting(DType::bf16, {1.05, 1}, {1, 1}), "FLA FlashInfer attention-gym FlashQLA");
  EXPECT_EQ(rejecting(DType::bf16, {2, 1}, {1, 1}), "FLA FlashInfer TileOPs attention-gym FlashQLA");
}

TEST(Peers, AbsoluteTolerancesAcceptAnythingSmall) {
  EXPECT_EQ(rejecting(DType::bf16, {0, 0}, {0.009, -0.009}), "FLA FlashQLA");
}

TEST(Peers, RelativeNormsAcceptOneWrongElementAmongLargeOnes) {
  EXPECT_EQ(rejecting(DType::f16, {1000, 1}, {1000, -1}), "FlashInfer TileOPs attention-gym");
}

TEST(Peers, RejectNan) {
  const double nan = std::nan("");
  EXPECT_EQ(rejecting(DType::bf16, {nan, 1}, {1, 1}), "FLA FlashInfer TileOPs attention-gym FlashQLA");
}

}  // namespace
}  // namespace deltagauge::validate
