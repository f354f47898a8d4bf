// SARIF, Google Benchmark JSON and Bencher Metric Format: the members that their readers ask for, of the right types, and
// valid JSON whatever the text and the numbers.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "reports/formats/formats.h"
#include "reports/formats/hostile_report.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using Json = nlohmann::ordered_json;
constexpr const char* kDate = "2026-01-31T12:00:00+00:00";

// What SARIF 2.1.0 and GitHub code scanning require of a log.
void expect_sarif(const Json& log) {
  EXPECT_EQ(log.at("version"), "2.1.0");
  ASSERT_EQ(log.at("runs").size(), 1u);
  const Json& run = log["runs"][0];
  EXPECT_TRUE(run.at("invocations").at(0).at("executionSuccessful").is_boolean());
  const Json& driver = run.at("tool").at("driver");
  EXPECT_EQ(driver.at("name"), "deltagauge");
  std::set<std::string> ids;
  for (const Json& rule : driver.at("rules")) {
    EXPECT_TRUE(ids.insert(rule.at("id")).second);
    for (const char* text : {"shortDescription", "fullDescription", "help"})
      EXPECT_TRUE(rule.at(text).at("text").is_string());
  }
  for (const Json& result : run.at("results")) {
    EXPECT_EQ(driver["rules"].at(result.at("ruleIndex").get<std::size_t>()).at("id"), result.at("ruleId"));
    EXPECT_EQ(result.at("level"), "error");
    EXPECT_FALSE(result.at("message").at("text").get<std::string>().empty());
    ASSERT_EQ(result.at("locations").size(), 1u);
    const Json& place = result["locations"][0].at("physicalLocation");
    const std::string uri = place.at("artifactLocation").at("uri");
    EXPECT_EQ(uri.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~/%"),
              std::string::npos);
    EXPECT_EQ(place.at("region").at("startLine"), 1);
    EXPECT_EQ(result.at("partialFingerprints").at("primaryLocationLineHash").get<std::string>().size(), 18u);
  }
}

TEST(Sarif, has_what_code_scanning_requires) {
  for (const Report& report : {sample_report(), hostile_report(), Report{}}) expect_sarif(Json::parse(to_sarif(report)));
}

TEST(Sarif, has_a_result_a_failed_or_broken_row_and_a_rule_a_check) {
  const Json run = Json::parse(to_sarif(sample_report()))["runs"][0];
  ASSERT_EQ(run["results"].size(), 2u);
  EXPECT_EQ(run["tool"]["driver"]["rules"].size(), 3u);
  EXPECT_EQ(run["tool"]["driver"]["rules"][2]["properties"]["tags"], Json::array({"performance"}));
  const Json& failed = run["results"][0];
  EXPECT_EQ(failed["ruleId"], "accuracy");
  EXPECT_EQ(failed["message"]["text"],
            std::string("cuda.gdn.recurrent accuracy failed: o: 2 values are not finite\nCase: ") + kSampleCase +
                "\nAgain: deltagauge validate --case '" + kSampleCase + "'");
  EXPECT_EQ(failed["locations"][0]["physicalLocation"]["artifactLocation"]["uri"], "configs/gdn/smoke.json");
  EXPECT_EQ(run["results"][1]["properties"]["outcome"], "error");
  EXPECT_EQ(run["invocations"][0]["executionSuccessful"], false);
  EXPECT_EQ(run["invocations"][0]["exitCode"], 1);
}

TEST(Sarif, says_that_an_unfinished_run_did_not_succeed) {
  Report report = sample_report();
  report.results = {report.results[0]};
  EXPECT_EQ(Json::parse(to_sarif(report))["runs"][0]["invocations"][0]["executionSuccessful"], true);
  report.jobs_left = 1;
  EXPECT_EQ(Json::parse(to_sarif(report))["runs"][0]["invocations"][0]["executionSuccessful"], false);
}

TEST(Sarif, fingerprints_the_case_check_and_backend_and_not_what_came_out) {
  const auto fingerprint = [](const Report& report) {
    return Json::parse(to_sarif(report))["runs"][0]["results"][0]["partialFingerprints"]["deltagauge/v1"];
  };
  Report report = sample_report();
  const Json before = fingerprint(report);
  report.results[1].reason = "another", report.results[1].seconds = 9, report.configs.clear();
  EXPECT_EQ(fingerprint(report), before);
  report.results[1].backend += "x";
  EXPECT_NE(fingerprint(report), before);
}

TEST(Sarif, takes_a_stand_in_place_without_a_config_and_escapes_paths) {
  const auto uri = [](std::vector<ConfigFile> configs) {
    Report report = sample_report();
    report.configs = std::move(configs);
    return Json::parse(
        to_sarif(report))["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"];
  };
  EXPECT_EQ(uri({}), "command-line");
  EXPECT_EQ(uri({{"a b/c:d#\xff.json", ""}}), "a%20b/c%3Ad%23%FF.json");
  EXPECT_EQ(uri({{"/configs/x.json", ""}}), "file:///configs/x.json");
}

TEST(GoogleBenchmark, has_the_context_and_entries_that_readers_ask_for) {
  const Json root = Json::parse(to_gbench(sample_report(), kDate));
  const Json& context = root["context"];
  EXPECT_EQ(context["date"], kDate);
  EXPECT_EQ(context["library_build_type"], "release");
  EXPECT_TRUE(context["caches"].is_array());
  for (const char* key : {"host_name", "executable", "num_cpus", "mhz_per_cpu", "cpu_scaling_enabled", "library_version"})
    EXPECT_TRUE(context.contains(key)) << key;
  ASSERT_EQ(root["benchmarks"].size(), 7u);  // three samples, four aggregates
  const std::string name = std::string(kSampleCase) + "/cuda.gdn.chunk_sm80/graph-hot";
  for (std::size_t i = 0; i < 3; ++i) {
    const Json& sample = root["benchmarks"][i];
    EXPECT_EQ(sample["name"], name);
    EXPECT_EQ(sample["run_type"], "iteration");
    EXPECT_EQ(sample["repetition_index"], i);
    EXPECT_EQ(sample["iterations"], 20);
  }
  EXPECT_EQ(root["benchmarks"][0]["real_time"], 12.5e-6 * 1e6);
  for (const Json& entry : root["benchmarks"]) {
    EXPECT_EQ(entry["real_time"], entry["cpu_time"]);
    EXPECT_EQ(entry["time_unit"], "us");
    EXPECT_EQ(entry["run_name"], name);
    EXPECT_EQ(entry["repetitions"], 3);
  }
  const char* aggregates[] = {"mean", "median", "stddev", "cv"};
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(root["benchmarks"][3 + i]["name"], name + "_" + aggregates[i]);
    EXPECT_EQ(root["benchmarks"][3 + i]["aggregate_name"], aggregates[i]);
  }
  EXPECT_DOUBLE_EQ(root["benchmarks"][5]["real_time"], 0.25);
  EXPECT_DOUBLE_EQ(root["benchmarks"][6]["real_time"], 0.02);
  EXPECT_EQ(root["benchmarks"][6]["aggregate_unit"], "percentage");
}

TEST(GoogleBenchmark, says_how_many_jobs_are_left) {
  Report report = sample_report();
  EXPECT_EQ(Json::parse(to_gbench(report, kDate))["context"]["jobs_left"], 0);
  report.jobs_left = 3;
  EXPECT_EQ(Json::parse(to_gbench(report, kDate))["context"]["jobs_left"], 3);
}

TEST(GoogleBenchmark, leaves_out_times_that_are_no_numbers_and_labels_rows_that_did_not_pass) {
  const Json root = Json::parse(to_gbench(hostile_report(), kDate));
  ASSERT_EQ(root["benchmarks"].size(), 1u + 7u + 7u);  // of row 0 the sample that is zero; rows 1 and 3 whole
  for (const Json& entry : root["benchmarks"]) {
    EXPECT_TRUE(entry["real_time"].is_number());
    EXPECT_LE(entry["run_name"].get<std::string>().size(), 1024u);
  }
  EXPECT_FALSE(root["benchmarks"][0].contains("tb_s"));
  EXPECT_TRUE(root["benchmarks"][1]["label"].get<std::string>().starts_with("fail: "));
}

TEST(Bencher, has_latency_in_nanoseconds_and_throughput_in_calls_a_second) {
  const Json root = Json::parse(to_bencher(sample_report()));
  ASSERT_EQ(root.size(), 1u);
  const Json& row = root[std::string(kSampleCase) + "/cuda.gdn.chunk_sm80/graph-hot"];
  EXPECT_DOUBLE_EQ(row["latency"]["value"], 12500);
  EXPECT_DOUBLE_EQ(row["latency"]["lower_value"], 12250);
  EXPECT_DOUBLE_EQ(row["latency"]["upper_value"], 12750);
  EXPECT_DOUBLE_EQ(row["throughput"]["value"], 80000);
  EXPECT_DOUBLE_EQ(row["tb_s"]["value"], 0.08);
  EXPECT_LT(row["tflop_s"]["lower_value"].get<double>(), row["tflop_s"]["value"].get<double>());
}

TEST(Bencher, keeps_names_apart_that_it_must_shorten_and_leaves_out_what_is_no_number) {
  Report report = hostile_report();
  report.results.push_back(report.results[1]);
  report.results.back().check += "x";
  const Json root = Json::parse(to_bencher(report));
  EXPECT_EQ(root.size(), 3u);  // rows 1, the timing row and the copy; row 0 has no finite measure
  for (const auto& [name, measures] : root.items()) {
    EXPECT_LE(name.size(), 1024u);
    for (const Json& metric : measures) EXPECT_TRUE(metric.at("value").is_number());
  }
  EXPECT_EQ(to_bencher(Report{}), "{}\n");
}

TEST(Writers, give_the_same_text_for_the_same_report) {
  const Report report = hostile_report();
  EXPECT_EQ(to_sarif(report), to_sarif(hostile_report()));
  EXPECT_EQ(to_gbench(report, kDate), to_gbench(hostile_report(), kDate));
  EXPECT_EQ(to_openmetrics(report), to_openmetrics(hostile_report()));
}

}  // namespace
}  // namespace deltagauge::reports
