// Joining shards.
#include "reports/compare/merge.h"

#include <gtest/gtest.h>

#include "core/error.h"
#include "reports/sample_report.h"

namespace deltagauge::reports::compare {
namespace {

using Words = std::vector<std::string>;

Report joined(const std::vector<Report>& shards) {
  Words names;
  for (std::size_t i = 1; i <= shards.size(); ++i) names.push_back(std::to_string(i) + ".json");
  return merge(shards, names);
}

std::string refusal(const std::vector<Report>& shards) {
  try {
    joined(shards);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

// The sample report, split after two rows.
std::vector<Report> two_shards() {
  Report first = sample_report(), second = first;
  first.results.resize(2);
  first.shard = {1, 2};
  first.argv.insert(first.argv.end(), {"--shard", "1/2", "--json", "1.json", "--filter", "*"});
  second.results.erase(second.results.begin(), second.results.begin() + 2);
  second.shard = {2, 2};
  second.argv.insert(second.argv.end(), {"--shard=2/2", "--quiet", "--report=out", "--filter=*", "--resume", "2.json"});
  return {first, second};
}

TEST(Merge, keeps_every_row_in_the_order_of_the_shards) {
  const std::vector<Report> shards = two_shards();
  const Report expected = sample_report();
  for (const std::vector<Report>& order : {shards, {shards[1], shards[0]}}) {
    const Report whole = joined(order);
    ASSERT_EQ(whole.results.size(), expected.results.size());
    for (std::size_t i = 0; i < whole.results.size(); ++i) {
      EXPECT_EQ(whole.results[i].test, expected.results[i].test);
      EXPECT_EQ(whole.results[i].check, expected.results[i].check);
    }
    EXPECT_EQ(whole.argv, (Words{"deltagauge", "validate", "configs/gdn/smoke.json", "--filter", "*"}));
    EXPECT_FALSE(whole.shard);
  }
  EXPECT_EQ(joined({expected}).results.size(), expected.results.size());
}

TEST(Merge, takes_the_first_roofline_that_there_is) {
  std::vector<Report> shards = two_shards();
  shards[0].roofline.reset();
  EXPECT_EQ(joined(shards).roofline->copy_tb_s, 4.25);
}

TEST(Merge, refuses_shards_of_different_runs) {
  EXPECT_EQ(refusal({}), "merge: expected at least one report, got none");
  std::vector<Report> shards = two_shards();
  shards[1].device->name = "NVIDIA H100";
  EXPECT_NE(refusal(shards).find("2.json: device: expected NVIDIA H200"), std::string::npos);
  shards = two_shards();
  shards[1].device.reset();
  EXPECT_NE(refusal(shards).find("got none"), std::string::npos);
  shards = two_shards();
  shards[1].tool.git_sha = "b";
  EXPECT_NE(refusal(shards).find("2.json: tool: expected 0.1.0 a"), std::string::npos);
  shards = two_shards();
  shards[1].configs[0].sha256 = "1";
  EXPECT_NE(refusal(shards).find("2.json: configs: expected"), std::string::npos);
  shards = two_shards();
  shards[1].argv.insert(shards[1].argv.end(), {"--oracle", "dd"});
  EXPECT_EQ(refusal(shards),
            "2.json: command: expected validate configs/gdn/smoke.json --filter *, got validate configs/gdn/smoke.json "
            "--filter * --oracle dd");
}

TEST(Merge, wants_each_shard_once_and_finished) {
  const std::vector<Report> both = two_shards();
  EXPECT_EQ(refusal({both[0]}), "merge: expected all 2 shards, got none of 2/2");
  EXPECT_EQ(refusal({both[0], both[1], both[0]}), "3.json: expected each shard once, got 1/2 again");
  std::vector<Report> shards = both;
  shards[1].shard = {2, 3};
  EXPECT_EQ(refusal(shards), "2.json: expected a shard of 2, got 2/3");
  shards[1].shard.reset();
  EXPECT_EQ(refusal(shards), "2.json: expected a shard of 2, got 1/1");
  EXPECT_EQ(refusal({sample_report(), sample_report()}), "2.json: expected each shard once, got 1/1 again");
  shards = both;
  shards[0].jobs_left = 3;
  EXPECT_EQ(refusal(shards), "1.json: expected a finished run, got one with 3 jobs left");
}

TEST(Words, of_verdicts_say_nothing_of_outputs_and_of_how_the_run_is_made) {
  const Words argv{"x/deltagauge", "cp",          "a.json",   "--seed=7", "--json",   "-",       "--shard", "1/2",
                   "--isolate",    "--timeout=3", "--degree", "2",        "--shrink", "--quiet", "--github"};
  EXPECT_EQ(words_of_verdicts(argv), (Words{"cp", "a.json", "--seed", "7", "--degree", "2"}));
  EXPECT_EQ(words_of_all(argv),
            (Words{"cp", "a.json", "--seed", "7", "--isolate", "--timeout", "3", "--degree", "2", "--shrink"}));
}

}  // namespace
}  // namespace deltagauge::reports::compare
