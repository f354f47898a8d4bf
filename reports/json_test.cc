// Writer and reader of deltagauge.report/1: what is written reads back, and every departure is named.
#include "reports/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "reports/sample_report.h"

namespace deltagauge::reports {
namespace {

using Json = nlohmann::ordered_json;

std::string error_of(const std::string& text) {
  try {
    parse_report(text, "r.json");
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(ReportJson, reads_back_what_it_wrote) {
  const std::string text = to_json(sample_report());
  EXPECT_EQ(to_json(parse_report(text, "r.json")), text);
}

TEST(ReportJson, reads_back_the_spans_of_a_replay) {
  Report report = sample_report();
  report.results.push_back(sample_replay());
  const std::string text = to_json(report);
  const Report back = parse_report(text, "r.json");
  EXPECT_EQ(to_json(back), text);
  const std::vector<Span>& spans = back.results.back().spans;
  ASSERT_EQ(spans.size(), sample_replay().spans.size());
  EXPECT_EQ(spans[8].name, "replay");
  EXPECT_EQ(spans[8].active_tokens, 65);
  EXPECT_EQ(spans[8].reason, "o: differs");
  EXPECT_EQ(spans[10].device_seconds, 0x1p-13);
  EXPECT_EQ(spans[13].depth, 2);
}

TEST(ReportJson, reads_back_a_shard_that_is_unfinished_and_what_was_shrunk) {
  Report report = sample_report();
  report.shard = {2, 3};
  report.jobs_left = 7;
  report.results[1].shrunk = ShrunkCase{"gdn/fwd/len=1/seed=1", "out/report.shrunk1.safetensors"};
  report.results[4].job = "one gate";
  const std::string text = to_json(report);
  const Report back = parse_report(text, "r.json");
  EXPECT_EQ(to_json(back), text);
  EXPECT_EQ(to_string(*back.shard), "2/3");
  EXPECT_EQ(back.exit_status(), 2) << "whatever its rows are";
  EXPECT_EQ(back.results[1].shrunk->file, "out/report.shrunk1.safetensors");
  EXPECT_EQ(job_of(back.results[4]), "one gate");
  EXPECT_EQ(job_of(back.results[2]), std::string(kSampleCase) + " cuda.gdn.recurrent stages");
}

TEST(ReportJson, keeps_the_order_of_keys) {
  const Json root = Json::parse(to_json(sample_report()));
  const auto keys = [](const Json& object) {
    std::string text;
    for (const auto& item : object.items()) text += item.key() + " ";
    return text;
  };
  EXPECT_EQ(keys(root), "schema tool host device roofline started argv configs shard jobs_left summary results ");
  EXPECT_EQ(keys(root["tool"]), "version git_sha dirty compiler cuda_archs ");
  EXPECT_EQ(keys(root["summary"]), "judged passed failed skipped errors ");
  EXPECT_EQ(keys(root["results"][1]), "case name op direction backend check outcome reason seconds tensors repro ");
  EXPECT_EQ(keys(root["results"][1]["tensors"]["o"]),
            "rel_l2 max_abs ulp row_ratio element_ratio worst_row bias non_finite worst budget ");
}

TEST(ReportJson, writes_what_json_cannot_say_as_words) {
  const Json o = Json::parse(to_json(sample_report()))["results"][1]["tensors"]["o"];
  EXPECT_EQ(o["row_ratio"], "inf");
  EXPECT_EQ(o["element_ratio"], "nan");
  EXPECT_EQ(o["bias"], "-inf");
  EXPECT_EQ(o["worst"]["got"], "nan");
}

TEST(ReportJson, survives_bytes_that_are_not_utf8) {
  Report report = sample_report();
  report.results[1].reason = "got \xff\xfe";
  EXPECT_EQ(parse_report(to_json(report), "r.json").results[1].reason, "got \xef\xbf\xbd\xef\xbf\xbd");
}

TEST(ReportJson, names_the_place_of_every_departure) {
  const struct {
    const char* pointer;
    Json value;
    const char* message;
  } kBroken[] = {
      {"/schema", "deltagauge.report/2", "r.json#/schema: expected \"deltagauge.report/1\""},
      {"/extra", 1, "r.json#: unknown key \"extra\""},
      {"/tool/dirty", "no", "r.json#/tool/dirty: expected true or false"},
      {"/host/threads", -1, "r.json#/host/threads: expected an integer from 0"},
      {"/device/clocks/sm_mhz", 1.5, "r.json#/device/clocks/sm_mhz: expected a 64-bit integer, got 1.5"},
      {"/argv", "validate", "r.json#/argv: expected an array, got string"},
      {"/configs/0/sha", "x", "r.json#/configs/0: unknown key \"sha\""},
      {"/summary/passed", 7, "r.json#/summary: expected {"},
      {"/results/0/outcome", "passed", "r.json#/results/0/outcome: expected pass, fail, skip or error"},
      {"/results/0/tensors/o/rel_l2", "NaN", "r.json#/results/0/tensors/o/rel_l2: expected a number"},
      {"/results/0/tensors/o/non_finite", 18446744073709551615u,
       "r.json#/results/0/tensors/o/non_finite: expected a 64-bit"},
      {"/results/0/tensors/o/worst/index/1", "a", "r.json#/results/0/tensors/o/worst/index/1: expected a 64-bit integer"},
      {"/results/4/timing/samples/0", "fast", "r.json#/results/4/timing/samples/0: expected a number"},
      {"/results/4/timing/settled", 1, "r.json#/results/4/timing/settled: expected true or false"},
      {"/results/4/timing/conditions/mhz", 1, "r.json#/results/4/timing/conditions: unknown key \"mhz\""},
      {"/results/0/tensors/o/map/heads", 5,
       "r.json#/results/0/tensors/o/map: expected heads x blocks = 5 x 3 values, got 12"},
      {"/results/0/ranges/Ainv/flushes", 0.5, "r.json#/results/0/ranges/Ainv/flushes: expected a 64-bit integer"},
      {"/results/0/values/h0.largest_safe", "big", "r.json#/results/0/values/h0.largest_safe: expected a number"},
      {"/results/0/spans/1/depth", -1, "r.json#/results/0/spans/1/depth: expected an integer from 0"},
      {"/results/0/spans/1/end", 1, "r.json#/results/0/spans/1: unknown key \"end\""},
      {"/results/0/tensors", nullptr, "r.json#/results/0/tensors: expected an object, got null"},
  };
  for (const auto& broken : kBroken) {
    Json root = Json::parse(to_json(sample_report()));
    root[Json::json_pointer(broken.pointer)] = broken.value;
    EXPECT_EQ(error_of(root.dump()).substr(0, std::string(broken.message).size()), broken.message);
  }
  Json root = Json::parse(to_json(sample_report()));
  root["results"][2].erase("check");
  EXPECT_EQ(error_of(root.dump()), "r.json#/results/2: expected the key \"check\", which is missing");
  EXPECT_EQ(error_of("{\"schema\": ").substr(0, 17), "r.json: not JSON:");
  const std::string text = to_json(sample_report());
  EXPECT_EQ(error_of(text + std::string(1, '\0') + "x").substr(0, 24), "r.json: not JSON: NUL at");
  EXPECT_EQ(error_of("{\"tool\": {\"dirty\": true, \"dirty\": false}}"), "r.json#/tool: the key 'dirty' stands twice");
  EXPECT_EQ(error_of("{\"schema\": 1e400}").substr(0, 17), "r.json: not JSON:");
  EXPECT_EQ(error_of("[]"), "r.json#: expected an object, got array");
}

TEST(Report, exit_status_puts_a_failed_verdict_first_and_a_skip_is_never_a_pass) {
  const auto status = [](std::initializer_list<Outcome> outcomes) {
    Report report;
    for (const Outcome outcome : outcomes) report.results.emplace_back().outcome = outcome;
    return report.exit_status();
  };
  EXPECT_EQ(status({}), 3);
  EXPECT_EQ(status({Outcome::skip}), 3);
  EXPECT_EQ(status({Outcome::skip, Outcome::pass}), 0);
  EXPECT_EQ(status({Outcome::pass, Outcome::error}), 2);
  EXPECT_EQ(status({Outcome::error, Outcome::fail, Outcome::pass}), 1);
}

}  // namespace
}  // namespace deltagauge::reports
