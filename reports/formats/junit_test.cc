// JUnit XML: counts, elements and properties of the sample; hostile text reads back; xmllint agrees.
#include <gtest/gtest.h>

#include <pugixml.hpp>

#include "reports/formats/formats.h"
#include "reports/formats/hostile_report.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;

pugi::xml_document parsed(const std::string& text) {
  pugi::xml_document document;
  const auto result = document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  EXPECT_TRUE(result) << result.description();
  return document;
}

std::string counts(pugi::xml_node node) {
  std::string text;
  for (const char* name : {"tests", "failures", "errors", "skipped", "time"})
    text += std::string(node.attribute(name).value()) + " ";
  return text;
}

std::string property(pugi::xml_node node, const char* name) {
  return node.child("properties").find_child_by_attribute("name", name).attribute("value").value();
}

TEST(Junit, counts_every_outcome_in_its_suite_and_in_all) {
  const auto document = parsed(to_junit(sample_report()));
  const auto suites = document.child("testsuites");
  EXPECT_EQ(counts(suites), "5 1 1 1 2.250000 ");
  const auto suite = [&](const char* name) { return suites.find_child_by_attribute("testsuite", "name", name); };
  EXPECT_EQ(counts(suite("cuda.gdn.chunk_sm80")), "2 0 0 0 1.750000 ");
  EXPECT_EQ(counts(suite("cuda.gdn.recurrent")), "2 1 0 1 0.500000 ");
  EXPECT_EQ(counts(suite("reference.l2norm")), "1 0 1 0 0.000000 ");
  EXPECT_EQ(property(suite("reference.l2norm"), "device"), "NVIDIA H200");
}

TEST(Junit, has_an_error_more_where_a_run_is_unfinished) {
  Report report = sample_report();
  report.jobs_left = 3;
  const auto suites = parsed(to_junit(report)).child("testsuites");
  EXPECT_EQ(counts(suites), "6 1 2 1 2.250000 ");
  const auto suite = suites.find_child_by_attribute("testsuite", "name", "deltagauge");
  EXPECT_STREQ(suite.child("testcase").child("error").attribute("message").value(), "3 jobs left");
}

TEST(Junit, says_why_a_row_did_not_pass_and_how_to_see_it_again) {
  const auto document = parsed(to_junit(sample_report()));
  const auto cases = document.select_nodes("//testcase");
  ASSERT_EQ(cases.size(), 5u);
  const auto failure = document.select_node("//failure").node();
  EXPECT_STREQ(failure.attribute("message").value(), "o: 2 values are not finite");
  EXPECT_EQ(failure.text().get(),
            std::string("o: 2 values are not finite\nagain: deltagauge validate --case '") + kSampleCase + "'");
  EXPECT_EQ(failure.parent().attribute("name").value(), std::string(kSampleCase) + " [accuracy]");
  EXPECT_STREQ(failure.parent().attribute("classname").value(), "cuda.gdn.recurrent");
  EXPECT_STREQ(document.select_node("//skipped").node().attribute("message").value(), "no taps");
  EXPECT_STREQ(document.select_node("//error").node().text().get(), "x: expected 2 dimensions, got 3");
}

TEST(Junit, carries_metrics_and_times_as_properties) {
  const auto document = parsed(to_junit(sample_report()));
  const auto first = document.select_node("//testcase").node();
  EXPECT_EQ(property(first, "row_ratio.o"), "0.78");
  EXPECT_EQ(property(first, "rel_l2.final_state"), "0");
  EXPECT_EQ(property(document.select_node("//testcase[failure]").node(), "row_ratio.o"), "inf");
  EXPECT_EQ(property(document.select_node("//testcase[contains(@name, 'graph-hot')]").node(), "time_median_seconds"),
            "1.25e-05");
}

TEST(Junit, keeps_hostile_text_but_for_what_xml_cannot_hold) {
  const Report report = hostile_report();
  const auto document = parsed(to_junit(report));
  const auto failure = document.select_node("//failure").node();
  const Result& failed = report.results[1];
  EXPECT_EQ(failure.attribute("message").value(), clean(failed.reason));
  EXPECT_EQ(failure.parent().attribute("classname").value(), clean(failed.backend));
  EXPECT_EQ(failure.parent().attribute("name").value(), clean(failed.test + " [" + failed.check + "]"));
  EXPECT_EQ(counts(document.child("testsuites")), "5 1 1 1 0.000000 ");
}

TEST(Junit, is_well_formed_to_xmllint) {
  if (!have("xmllint")) GTEST_SKIP() << "needs xmllint (libxml2-utils)";
  for (const Report& report : {sample_report(), hostile_report(), Report{}})
    EXPECT_EQ(answer_to(to_junit(report), "xmllint --noout -"), "exit 0");
}

TEST(Text, replaces_what_is_not_utf8_or_not_in_xml) {
  EXPECT_EQ(clean("a\tb\r\nc"), "a\tb\r\nc");
  EXPECT_EQ(clean(std::string_view("a\0b", 3)),
            "a\xef\xbf\xbd"
            "b");
  EXPECT_EQ(clean("\x1b"), "\xef\xbf\xbd");
  EXPECT_EQ(clean("\xff"), "\xef\xbf\xbd");
  EXPECT_EQ(clean("\xef\xbf\xbf!"), "\xef\xbf\xbd!");
  EXPECT_EQ(clean("\xf0\x9f\x98\x80\x7f"), "\xf0\x9f\x98\x80\x7f");
}

TEST(Text, finds_the_config_of_a_result_where_only_one_can_be_meant) {
  Report report = sample_report();
  EXPECT_EQ(config_of(report, report.results[0]), "configs/gdn/smoke.json");
  report.configs.push_back({"configs/l2norm/smoke.json", ""});
  EXPECT_EQ(config_of(report, report.results[0]), "configs/gdn/smoke.json");
  report.configs.push_back({"configs/gdn/accuracy.json", ""});
  EXPECT_EQ(config_of(report, report.results[0]), "");
  EXPECT_EQ(config_of(Report{}, report.results[0]), "");
}

}  // namespace
}  // namespace deltagauge::reports
