#include "core/sweep.h"

#include <gtest/gtest.h>

#include "core/backend.h"
#include "core/error.h"

namespace deltagauge {
namespace {

std::string refusal(const char* json) {
  try {
    parse_sweep(json, "x.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(Sweep, ExpandsAGridInOrder) {
  const Sweep sweep = parse_sweep(R"({"schema": "deltagauge.sweep/1", "op": "gdn", "checks": ["accuracy", "guard"],
    "defaults": {"K": 128, "V": 128}, "grid": [{"name": "g", "axes": {"io": ["bf16", "f16"], "len": ["5", "6+7"]}}],
    "cases": ["gdn/fwd/len=3", {"id": "gdn/fwd/len=4", "name": "C1", "checks": ["causal"], "expect": "refused",
    "ceilings": [{"tensor": "o", "metric": "rel_l2", "value": 0.004, "from": "someone"}]}]})",
                                  "x.json");
  ASSERT_EQ(sweep.cases.size(), 6u);
  EXPECT_EQ(to_id(sweep.cases[1].test), "gdn/fwd/len=6+7,HK=1,HV=1,K=128,V=128/bf16/gate=mild/keys=iid/precise/seed=0");
  EXPECT_EQ(sweep.cases[2].test.problem.io, DType::f16);
  EXPECT_EQ(sweep.cases[0].checks, (std::vector<std::string>{"accuracy", "guard"}));
  EXPECT_EQ(sweep.cases[5].expect, "refused");
  EXPECT_EQ(sweep.cases[5].ceilings[0].value, 0.004);
}

TEST(Sweep, NamesTheJsonPathOfWhatIsWrong) {
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "cases": ["gdn/fwd/len=1"], "colour": 1})"),
            "x.json: $: unknown key 'colour'; expected one of schema name note op backend checks defaults grid cases");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"len": ["1", "y"]}}]})"),
            "x.json: $.grid[0].axes.len[1]: len: expected an integer in [0, 1099511627776], got 'y'");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "cases": [{"id": "gdn/fwd/len=1", "expect": "fail"}]})"),
            "x.json: $.cases[0].expect: expected pass or refused, got 'fail'");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"len": "1", "len": "2"}}]})"),
            "x.json: $.grid[0].axes: the key 'len' stands twice");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"kscale": 1e400}}]})").substr(0, 16),
            "x.json: not JSON");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"len": []}}]})"),
            "x.json: $.grid[0].axes.len: expected at least one value, got []");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "cases": ["gdn/fwd/len=8/v[5:3,0,0]=1"]})"),
            "x.json: $.cases[0]: override v[5:3,0,0]=1: expected a range a:b with a < b, got '5:3'");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "grid": [{"checks": [], "axes": {}}]})"),
            "x.json: $.grid[0].checks: expected at least one check, got []");
  EXPECT_THROW(load_sweep(testing::TempDir()), Error);
  std::string many = "0";
  for (int i = 1; i < 1100; ++i) many += "," + std::to_string(i);
  EXPECT_EQ(refusal(("{\"schema\": \"deltagauge.sweep/1\", \"grid\": [{\"axes\": {\"ids\": [" + many + "], \"seed\": [" +
                     many + "]}}]}")
                        .c_str()),
            "x.json: $.grid[0].axes.seed: expected a grid of at most 1048576 cases, got 1210000 up to here");
  EXPECT_EQ(refusal(R"({"schema": "deltagauge.sweep/1", "cases": ["gdn/fwd/len=1", "gdn/fwd"]})"),
            "x.json: $.cases[1]: case id: expected op/direction/len=...,..., got 'gdn/fwd'");
  for (const char* json :
       {"", "[]", "{}", "{", R"({"schema": "deltagauge.sweep/1"})", R"({"schema": "deltagauge.sweep/2", "cases": []})",
        R"({"schema": "deltagauge.sweep/1", "op": "nosuch", "cases": ["gdn/fwd/len=1"]})",
        R"({"schema": "deltagauge.sweep/1", "defaults": {"x": 1}, "cases": ["gdn/fwd/len=1"]})",
        R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"len": []}}]})",
        R"({"schema": "deltagauge.sweep/1", "grid": 3})",
        R"({"schema": "deltagauge.sweep/1", "checks": [], "cases": ["gdn/fwd/len=1"]})",
        R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"HK": 2, "HV": 3}}]})"})
    EXPECT_NE(refusal(json), "accepted") << json;
}

TEST(Sweep, NamesTheJsonPathOfACheckThatIsNone) {
  const auto refused = [](const std::string& rest) -> std::string {
    try {
      parse_sweep(R"({"schema": "deltagauge.sweep/1", )" + rest + "}", "x.json", [](const std::string& name) {
        if (name != "accuracy") throw Error("expected accuracy, got '" + name + "'");
      });
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  };
  EXPECT_EQ(refused(R"("checks": ["accuracy"], "cases": ["gdn/fwd/len=1"])"), "accepted");
  EXPECT_EQ(refused(R"("checks": ["speed"], "cases": ["gdn/fwd/len=1"])"),
            "x.json: $.checks[0]: expected accuracy, got 'speed'");
  EXPECT_EQ(refused(R"("grid": [{"checks": ["accuracy", "speed"]}])"),
            "x.json: $.grid[0].checks[1]: expected accuracy, got 'speed'");
  EXPECT_EQ(refused(R"("cases": ["gdn/fwd/len=1", {"id": "gdn/fwd/len=2", "checks": ["speed"]}])"),
            "x.json: $.cases[1].checks[0]: expected accuracy, got 'speed'");
}

TEST(Sweep, OverridesAnAxisAndDropsWhatBecomesTheSame) {
  Sweep sweep =
      parse_sweep(R"({"schema": "deltagauge.sweep/1", "grid": [{"axes": {"io": ["bf16", "f16"], "seed": [1, 2]}}]})", "x");
  override_axis(sweep, "io", "f32");
  ASSERT_EQ(sweep.cases.size(), 2u);
  EXPECT_THROW(override_axis(sweep, "io", "f8"), Error);
}

TEST(Glob, MatchesStarsAndQuestionMarks) {
  EXPECT_TRUE(glob_match("cuda.*", "cuda.gdn.recurrent"));
  EXPECT_TRUE(glob_match("*chunk*80", "cuda.gdn.chunk_sm80"));
  EXPECT_FALSE(glob_match("cuda.?", "cuda.gdn"));
  EXPECT_TRUE(glob_match("", ""));
  EXPECT_FALSE(glob_match("", "a"));
}

}  // namespace
}  // namespace deltagauge
