// What compare() says of single rows: times, accuracy, bits, rows that come and go, devices; blocks; text and JSON.
#include "reports/compare/compare.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "core/error.h"

namespace deltagauge::reports::compare {
namespace {

// Times whose logs lie evenly within 1 % of the centre, in a fixed mixed order.
std::vector<double> samples(double centre, int count = 40) {
  std::vector<double> out;
  for (int i = 0; i < count; ++i) out.push_back(centre * std::exp(0.01 * (2.0 * (i * 7 % count) + 1 - count) / count));
  return out;
}

Result bench(const std::string& test, double time) {
  Result r;
  r.test = test, r.backend = "cuda.gdn.chunk", r.check = "graph-hot", r.outcome = Outcome::pass;
  r.timing.emplace().samples = samples(time);
  r.digests = {{"o", "00"}, {"final_state", "11"}};
  return r;
}

Result accuracy(const std::string& test, Outcome outcome, double row_ratio = 1) {
  Result r;
  r.test = test, r.backend = "cuda.gdn.chunk", r.check = "accuracy", r.outcome = outcome;
  r.reason = outcome == Outcome::pass ? "" : "o is wrong";
  r.tensors["o"].row_ratio = row_ratio;
  return r;
}

Report report_of(std::vector<Result> rows) {
  Report report;
  report.device = Device{"NVIDIA H200", 90, 132, 13000, 13000, 1980, 3201};
  report.results = std::move(rows);
  return report;
}

Pair only(const Report& base, const Report& fresh, const CompareOptions& options = {}) {
  const Comparison comparison = compare(base, fresh, options);
  EXPECT_EQ(comparison.pairs.size(), 1u);
  EXPECT_EQ(comparison.exit_status(), comparison.pairs.at(0).failed ? 1 : 0);
  return comparison.pairs.at(0);
}

std::string refusal(const Report& base, const Report& fresh) {
  try {
    compare(base, fresh);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Compare, finds_a_slower_and_a_faster_row_and_leaves_an_equal_one) {
  const Comparison c = compare(report_of({bench("a", 1e-5), bench("b", 1e-5), bench("c", 1e-5)}),
                               report_of({bench("c", 0.9e-5), bench("b", 1.001e-5), bench("a", 1.1e-5)}));
  ASSERT_EQ(c.pairs.size(), 3u);
  EXPECT_EQ(c.pairs[0].verdict, Verdict::regression);
  EXPECT_EQ(c.pairs[1].verdict, Verdict::same);
  EXPECT_EQ(c.pairs[2].verdict, Verdict::improvement);
  EXPECT_TRUE(c.pairs[0].failed);
  EXPECT_FALSE(c.pairs[2].failed);
  EXPECT_EQ(c.exit_status(), 1);
  const TimeChange& t = *c.pairs[0].time;
  EXPECT_GT(t.ratio.low, 1.08);
  EXPECT_LT(t.ratio.high, 1.12);
  EXPECT_LT(t.ratio.low, t.ratio.centre);
  EXPECT_GE(t.q, t.p);
  EXPECT_GE(t.p, t.p_samples);
}

TEST(Compare, does_not_take_a_session_shift_for_a_change) {
  const Pair pair = only(report_of({bench("a", 1e-5)}), report_of({bench("a", 1.009e-5)}));
  EXPECT_LT(pair.time->p_samples, 0.01);  // a rank test alone would
  EXPECT_EQ(pair.verdict, Verdict::same);
}

TEST(Compare, asks_cycles_too_where_clocks_are_known) {
  Report base = report_of({bench("a", 1e-5)}), fresh = report_of({bench("a", 1.1e-5)});
  base.results[0].timing->conditions.sm_mhz = 1980;
  fresh.results[0].timing->conditions.sm_mhz = 1800;
  fresh.results[0].timing->conditions.throttle = {"sw_thermal_slowdown"};
  const Pair slow_clock = only(base, fresh);
  EXPECT_EQ(slow_clock.verdict, Verdict::same);
  EXPECT_EQ(slow_clock.note, "fresh throttled: sw_thermal_slowdown; time moved with the SM clock; cycles did not");
  fresh.results[0].timing->conditions.sm_mhz = 1980;
  EXPECT_EQ(only(base, fresh).verdict, Verdict::regression);
}

TEST(Compare, never_calls_a_wrong_row_faster) {
  const Report base = report_of({bench("a", 1e-5)});
  Report fresh = report_of({bench("a", 0.5e-5)});
  fresh.results[0].outcome = Outcome::fail, fresh.results[0].reason = "the gate failed";
  const Pair failed = only(base, fresh);
  EXPECT_EQ(failed.verdict, Verdict::invalid);
  EXPECT_EQ(failed.note, "the gate failed");
  EXPECT_TRUE(failed.failed);

  const Comparison c = compare(base, report_of({bench("a", 0.5e-5), accuracy("a", Outcome::fail)}));
  ASSERT_EQ(c.pairs.size(), 2u);
  EXPECT_EQ(c.pairs[0].verdict, Verdict::invalid);
  EXPECT_EQ(c.pairs[0].note, "accuracy fails: o is wrong");
  EXPECT_EQ(c.pairs[1].verdict, Verdict::added);
  const Report other_case = report_of({bench("a", 0.5e-5), accuracy("b", Outcome::fail)});
  EXPECT_EQ(compare(base, other_case).pairs[0].verdict, Verdict::improvement);
}

TEST(Compare, calls_a_lost_row_a_failure_unless_allowed) {
  const Report base = report_of({bench("a", 1e-5), bench("b", 1e-5)});
  Report fresh = report_of({bench("a", 1e-5)});
  EXPECT_EQ(compare(base, fresh).pairs[1].verdict, Verdict::missing);
  EXPECT_EQ(compare(base, fresh).exit_status(), 1);
  EXPECT_EQ(compare(base, fresh, {.allow_missing = true}).exit_status(), 0);
  fresh.results.push_back(bench("b", 1e-5));
  fresh.results[1].outcome = Outcome::skip, fresh.results[1].reason = "no device";
  EXPECT_EQ(compare(base, fresh).pairs[1].note, "skipped: no device");
  EXPECT_EQ(compare(base, fresh).exit_status(), 1);
  EXPECT_EQ(compare(base, report_of({}), {.allow_missing = true}).exit_status(), 3);
}

TEST(Compare, lists_new_rows_and_has_nothing_to_say_without_any_pair) {
  const Comparison c = compare(report_of({}), report_of({bench("a", 1e-5)}));
  ASSERT_EQ(c.pairs.size(), 1u);
  EXPECT_EQ(name(c.pairs[0].verdict), "new");
  EXPECT_EQ(c.exit_status(), 3);
  EXPECT_EQ(compare(report_of({}), report_of({})).exit_status(), 3);
}

TEST(Compare, judges_accuracy_by_outcome_and_shows_row_ratios) {
  const Report pass = report_of({accuracy("a", Outcome::pass, 0.5)}), fail = report_of({accuracy("a", Outcome::fail, NAN)});
  const Pair worse = only(pass, fail);
  EXPECT_EQ(worse.verdict, Verdict::regression);
  EXPECT_EQ(worse.note, "o is wrong");
  EXPECT_EQ(worse.accuracy->base, 0.5);
  EXPECT_TRUE(std::isnan(worse.accuracy->fresh));
  EXPECT_EQ(only(fail, pass).verdict, Verdict::improvement);
  EXPECT_EQ(only(fail, fail).note, "still fails: o is wrong");
  EXPECT_EQ(only(pass, pass).verdict, Verdict::same);
}

TEST(Compare, reports_changed_bits_and_fails_on_them_when_asked) {
  const Report base = report_of({bench("a", 1e-5)});
  Report fresh = base;
  fresh.results[0].digests["o"] = "01";
  EXPECT_EQ(only(base, fresh).changed_bits, std::vector<std::string>{"o"});
  EXPECT_FALSE(only(base, fresh).failed);
  EXPECT_TRUE(only(base, fresh, {.bits = true}).failed);
  EXPECT_FALSE(only(base, base, {.bits = true}).failed);
}

TEST(Compare, refuses_other_devices_and_warns_of_other_clocks_and_drivers) {
  const Report base = report_of({bench("a", 1e-5)});
  Report fresh = base;
  fresh.device->name = "NVIDIA H100";
  EXPECT_EQ(refusal(base, fresh), "device: expected NVIDIA H200 (sm_90) as in base, got NVIDIA H100 (sm_90)");
  EXPECT_EQ(compare(base, fresh, {.across_devices = true}).warnings.size(), 1u);
  fresh.device.reset();
  EXPECT_EQ(refusal(base, fresh), "device: expected NVIDIA H200 (sm_90) as in base, got none");
  fresh.device = base.device;
  fresh.device->driver = 13010, fresh.device->clock_mhz = 1755;
  const std::vector<std::string> expected = {"SM clock (MHz) differs: 1980 and 1755", "driver differs: 13000 and 13010"};
  EXPECT_EQ(compare(base, fresh).warnings, expected);
}

TEST(Compare, refuses_what_it_cannot_pair) {
  const Report one = report_of({bench("a", 1e-5)}), twice = report_of({bench("a", 1e-5), bench("a", 1e-5)});
  EXPECT_THROW(compare(one, twice), Error);
  EXPECT_THROW(compare({}, std::span(&one, 1)), Error);
  Report other = one;
  other.tool.git_sha = "b";
  EXPECT_THROW(compare(std::vector{one, other}, std::vector{one}), Error);
  Report nan = one;
  nan.results[0].timing->samples[3] = NAN;
  EXPECT_THROW(compare(one, nan), Error);
}

TEST(Compare, needs_a_row_in_every_fresh_session) {
  const Report full = report_of({bench("a", 1e-5)});
  const Comparison c = compare(std::vector{full, full}, std::vector{full, report_of({})});
  EXPECT_EQ(c.pairs[0].verdict, Verdict::missing);
  EXPECT_EQ(c.pairs[0].note, "in 1 of 2 reports");
  EXPECT_EQ(compare(std::vector{full, report_of({})}, std::vector{full, full}).pairs[0].verdict, Verdict::same);
}

TEST(Compare, sees_smaller_changes_with_more_sessions) {
  const Report base = report_of({bench("a", 1e-5)}), fresh = report_of({bench("a", 1.02e-5)});
  const std::vector<Report> many_base(5, base), many_fresh(5, fresh);
  EXPECT_LT(compare(many_base, many_fresh).pairs[0].time->detectable, only(base, fresh).time->detectable);
  EXPECT_EQ(compare(many_base, many_fresh).pairs[0].verdict, Verdict::regression);
}

std::vector<Block> blocks(int count, double ratio) {
  std::vector<Block> out;
  for (int i = 0; i < count; ++i) {
    const double t = 1e-5 * (1 + 0.01 * i), fresh = t * ratio * (1 + 0.0001 * i);  // drifts by 1 % a block
    out.push_back({samples(t), samples(fresh * 1.001), samples(fresh * 1.002), samples(t * 1.003)});
  }
  return out;
}

TEST(Interleaved, drift_cancels_in_blocks) {
  const InterleavedRow slower{"a", "cuda.gdn.chunk", "graph-hot", blocks(10, 1.02)};
  const InterleavedRow equal{"b", "cuda.gdn.chunk", "graph-hot", blocks(10, 1.0)};
  const Comparison c = compare_interleaved(std::vector{slower, equal});
  EXPECT_EQ(c.pairs[0].verdict, Verdict::regression);
  EXPECT_DOUBLE_EQ(c.pairs[0].time->p, std::ldexp(1.0, -9));
  EXPECT_EQ(c.pairs[1].verdict, Verdict::same);
  EXPECT_EQ(c.exit_status(), 1);
}

TEST(Interleaved, too_few_blocks_find_nothing) {
  EXPECT_EQ(blocks_needed(1), 8);  // 2^-7 < 0.01
  EXPECT_EQ(blocks_needed(200), 16);
  const InterleavedRow row{"a", "b", "c", blocks(7, 1.5)};
  const Comparison c = compare_interleaved(std::span(&row, 1));
  EXPECT_EQ(c.pairs[0].verdict, Verdict::same);
  EXPECT_EQ(c.pairs[0].time->detectable, INFINITY);
  const InterleavedRow none{"a", "b", "c", {}};
  EXPECT_EQ(compare_interleaved(std::span(&none, 1)).exit_status(), 1);
}

TEST(Text, puts_the_worst_first_and_keeps_the_width) {
  Report fresh = report_of({bench("a", 1e-5), bench("b", 1.1e-5), bench("c", 0.9e-5), bench("d", 1.2e-5)});
  fresh.results[0].digests["o"] = "01";
  const Comparison c =
      compare(report_of({bench("a", 1e-5), bench("b", 1e-5), bench("c", 1e-5), bench("d", 1e-5), bench("e", 1e-5)}), fresh);
  const std::string all = text(c, 0), narrow = text(c, 60);
  const auto at = [&](const char* part) { return all.find(part); };
  EXPECT_LT(at("+20.0"), at("+10.0"));
  EXPECT_LT(at("+10.0"), at("\nmissing"));
  EXPECT_LT(at("\nmissing"), at("\nimprovement"));
  EXPECT_LT(at("\nimprovement"), at("\nsame"));
  EXPECT_NE(at("a  (bits changed: o)\n"), std::string::npos);
  EXPECT_NE(at("2 regression, 1 missing, 1 improvement, 1 same, 3 failed\n"), std::string::npos);
  for (std::size_t start = 0; start < narrow.size(); start = narrow.find('\n', start) + 1)
    EXPECT_LE(narrow.find('\n', start) - start, 60u);
}

TEST(Json, holds_the_whole_comparison) {
  Report base = report_of({bench("a", 1e-5), accuracy("b", Outcome::pass)});
  base.results[0].timing->samples = {1e-5, 1.1e-5};  // too few for an interval
  const auto json =
      nlohmann::json::parse(to_json(compare(base, report_of({bench("a", 1e-5), accuracy("b", Outcome::fail, INFINITY)}))));
  EXPECT_EQ(json["schema"], "deltagauge.comparison/1");
  EXPECT_EQ(json["exit_status"], 1);
  EXPECT_EQ(json["pairs"][0]["verdict"], "same");
  EXPECT_TRUE(json["pairs"][0]["time"]["cycles"].is_null());
  EXPECT_EQ(json["pairs"][1]["verdict"], "regression");
  EXPECT_EQ(json["pairs"][1]["row_ratio"]["fresh"], "inf");
}

}  // namespace
}  // namespace deltagauge::reports::compare
