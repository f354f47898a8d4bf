// Joining shards.
#include "reports/compare/merge.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "reports/sample_report.h"

namespace deltagauge::reports::compare {
namespace {

std::string refusal(const std::vector<Report>& shards) {
  try {
    merge(shards);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// The sample report, split after two rows.
std::vector<Report> two_shards() {
  Report first = sample_report(), second = first;
  first.results.resize(2);
  second.results.erase(second.results.begin(), second.results.begin() + 2);
  second.argv.push_back("--shard=2/2");
  return {first, second};
}

TEST(Merge, keeps_every_row_in_the_order_of_the_shards) {
  const std::vector<Report> shards = two_shards();
  const Report whole = merge(shards), expected = sample_report();
  ASSERT_EQ(whole.results.size(), expected.results.size());
  for (std::size_t i = 0; i < whole.results.size(); ++i) {
    EXPECT_EQ(whole.results[i].test, expected.results[i].test);
    EXPECT_EQ(whole.results[i].check, expected.results[i].check);
  }
  EXPECT_EQ(whole.argv, expected.argv);
  EXPECT_EQ(merge(std::span(&expected, 1)).results.size(), expected.results.size());
}

TEST(Merge, takes_the_first_roofline_that_there_is) {
  std::vector<Report> shards = two_shards();
  shards[0].roofline.reset();
  EXPECT_EQ(merge(shards).roofline->copy_tb_s, 4.25);
}

TEST(Merge, refuses_shards_of_different_runs) {
  EXPECT_EQ(refusal({}), "merge: expected at least one report, got none");
  std::vector<Report> shards = two_shards();
  shards[1].device->name = "NVIDIA H100";
  EXPECT_NE(refusal(shards).find("shard 2: device: expected NVIDIA H200"), std::string::npos);
  shards = two_shards();
  shards[1].device.reset();
  EXPECT_NE(refusal(shards).find("got none"), std::string::npos);
  shards = two_shards();
  shards[1].tool.git_sha = "b";
  EXPECT_NE(refusal(shards).find("shard 2: tool: expected 0.1.0 a"), std::string::npos);
  shards = two_shards();
  shards[1].configs[0].sha256 = "1";
  EXPECT_NE(refusal(shards).find("shard 2: configs: expected"), std::string::npos);
}

TEST(Merge, refuses_a_row_that_two_shards_have) {
  std::vector<Report> shards = two_shards();
  shards[1].results.push_back(shards[0].results[0]);
  EXPECT_NE(refusal(shards).find("shard 2: expected one row of each case, backend and check, got a second of gdn/fwd"),
            std::string::npos);
}

}  // namespace
}  // namespace deltagauge::reports::compare
