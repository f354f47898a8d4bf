// The page as text: loads nothing, its policy matches its content, no text of a report becomes markup.
#include "reports/html/html.h"

#include <gtest/gtest.h>

#include <set>

#include "reports/html/assets.h"
#include "reports/html/made_up_report.h"
#include "reports/html/text.h"
#include "reports/sample_report.h"

namespace deltagauge::reports::html {
namespace {

constexpr double kLimit = 1.5;

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

std::size_t times(std::string_view text, std::string_view part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

std::string made_up_page() { return to_html(made_up_report(), kLimit, made_up_history()); }

// The page without what comes from files: only what a report can have put there.
std::string without_assets(std::string page) {
  for (const std::string_view asset : {kPageCss, kPageJs, kUplotCss, kUplotJs})
    if (const auto at = page.find(asset); !asset.empty() && at != std::string::npos) page.erase(at, asset.size());
  return page;
}

// The contents of <tag>...</tag>, in order.
std::vector<std::string_view> contents(std::string_view page, const std::string& tag) {
  std::vector<std::string_view> found;
  for (std::size_t at = page.find("<" + tag + ">"); at != std::string_view::npos; at = page.find("<" + tag + ">", at)) {
    at += tag.size() + 2;
    found.push_back(page.substr(at, page.find("</" + tag, at) - at));
  }
  return found;
}

struct Attribute {
  std::string_view name, value;
};

// Every attribute of every tag; values here are always quoted. Scripts and styles are to be taken out first.
std::vector<Attribute> attributes(std::string_view page) {
  std::vector<Attribute> found;
  for (std::size_t at = page.find('<'); at != std::string_view::npos; at = page.find('<', at)) {
    while (at < page.size() && page[at] != '>') {
      const std::size_t end = page.find_first_of(" >=\"", ++at);
      if (end == std::string_view::npos) return found;
      const std::string_view name = page.substr(at, end - at);
      at = end;
      if (page[at] != '=') continue;
      const std::size_t from = at + 2;
      at = page.find('"', from);
      found.push_back({name, page.substr(from, at - from)});
    }
  }
  return found;
}

// Of the attributes that place something, one with a number that is not finite; empty when there is none.
std::string_view misplaced(std::string_view page) {
  const std::set<std::string_view> places = {"d", "x", "y", "width", "height", "viewBox", "transform"};
  for (const auto& [name, value] : attributes(page))
    if (places.contains(name) && (contains(value, "nan") || contains(value, "inf"))) return value;
  return "";
}

TEST(Html, loads_nothing) {
  const std::string page = without_assets(made_up_page());
  for (const char* part : {"src=\"", "url(", "@import", "http:", "https:", "<link", "<iframe", "<object", "<embed", "<base"})
    EXPECT_FALSE(contains(page, part)) << part;
  for (const std::string_view css : {kPageCss, kUplotCss}) EXPECT_FALSE(contains(css, "url(") || contains(css, "@import"));
  for (const std::string_view js : {kPageJs, kUplotJs})
    for (const char* part : {"fetch(", "XMLHttpRequest", "import(", "WebSocket", "innerHTML", "eval("})
      EXPECT_FALSE(contains(js, part)) << part;
}

TEST(Html, allows_exactly_its_own_script_and_style) {
  const std::string page = made_up_page();
  const auto scripts = contents(page, "script"), styles = contents(page, "style");
  ASSERT_EQ(scripts.size(), has_interactive_plots() ? 2u : 1u);
  ASSERT_EQ(styles.size(), 1u);
  std::string allowed;
  for (const std::string_view script : scripts) allowed += " " + csp_hash(script);
  EXPECT_TRUE(contains(page, "content=\"default-src 'none'; script-src" + allowed + "; style-src " + csp_hash(styles[0]) +
                                 "; base-uri 'none'; form-action 'none'\""));
  EXPECT_LT(page.find("Content-Security-Policy"), page.find("<style"));
  EXPECT_FALSE(contains(page, "\r"));
}

TEST(Html, hashes_as_the_policy_wants_them) {
  EXPECT_EQ(csp_hash(""), "'sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU='");
  EXPECT_EQ(base64("M"), "TQ==");
  EXPECT_EQ(base64("Ma"), "TWE=");
  EXPECT_EQ(base64("Man"), "TWFu");
}

TEST(Html, turns_no_text_of_a_report_into_markup) {
  const std::string page = without_assets(made_up_page());
  EXPECT_FALSE(contains(page, "alert(1)</script>"));
  EXPECT_FALSE(contains(page, "<img"));
  EXPECT_EQ(times(page, "<script"), times(to_html({}, kLimit), "<script"));
  EXPECT_TRUE(contains(page, "&lt;/script&gt;&lt;script&gt;alert(1)"));
  for (const auto& [name, value] : attributes(page))
    EXPECT_FALSE(name == "style" || name.starts_with("on")) << name << " " << value;
  EXPECT_GT(attributes(page).size(), 500u);
  for (const char c : page) EXPECT_TRUE(c == '\n' || c == '\t' || static_cast<unsigned char>(c) >= 0x20);
}

TEST(Html, shows_what_cannot_be_shown) {
  EXPECT_EQ(visible("a\x1b\x7f\tb\n"), "a\u241b\u2421\tb\n");
  EXPECT_EQ(visible("\xff\xc3(\xed\xa0\x80\xf4\x90\x80\x80\xc0\x80"),
            "\ufffd\ufffd(\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd\ufffd");
  EXPECT_EQ(visible("\xe2\x80\xae"), "\\u202e");
  EXPECT_EQ(visible("\u00b5 \u6f22 \U0001f600"), "\u00b5 \u6f22 \U0001f600");
  EXPECT_EQ(escape("<a b='\"&"), "&lt;a b=&#39;&quot;&amp;");
}

TEST(Html, says_the_outcome_first_and_failures_with_their_command) {
  const std::string page = without_assets(made_up_page());
  const auto outcome = page.find("FAILED:</strong>"), failures = page.find("id=\"failures\""),
             table = page.find("id=\"table\"");
  EXPECT_LT(outcome, failures);
  EXPECT_LT(failures, table);
  EXPECT_TRUE(contains(page, "deltagauge validate --case &#39;" + std::string(kSampleCase) + "&#39;</code></pre>"));
  EXPECT_TRUE(contains(page, "at [128, 0, 5]: sequence 2, token 0"));
  EXPECT_TRUE(contains(page, "BROKEN</span> reference.l2norm accuracy"));
  EXPECT_TRUE(contains(page, std::string(40, 'a')));
}

TEST(Html, says_first_that_a_run_is_unfinished) {
  Report report = sample_report();
  report.results = {report.results[0]};
  report.jobs_left = 3;
  EXPECT_TRUE(contains(to_html(report, 1.5), "<strong>UNFINISHED:</strong> 3 jobs left"));
}

TEST(Html, has_a_row_for_every_result) {
  const Report report = made_up_report();
  const std::string page = made_up_page();
  const auto from = page.find("<table id=\"table\">"), to = page.find("</table>", from);
  EXPECT_EQ(times(std::string_view(page).substr(from, to - from), "<tr><td"), report.results.size());
}

TEST(Html, leaves_out_parts_that_have_nothing_to_show) {
  const std::string page = without_assets(to_html({}, kLimit));
  EXPECT_TRUE(contains(page, "NOTHING JUDGED:"));
  for (const char* id : {"failures", "results", "maps", "ranges", "timings", "history"})
    EXPECT_FALSE(contains(page, std::string("<section id=\"") + id)) << id;
  const std::string full = without_assets(made_up_page());
  for (const char* id : {"failures", "results", "maps", "ranges", "timings", "history"})
    EXPECT_TRUE(contains(full, std::string("<section id=\"") + id)) << id;
}

TEST(Html, draws_no_point_that_is_not_finite) {
  const std::string page = without_assets(made_up_page());
  EXPECT_EQ(misplaced(page), "");
  EXPECT_TRUE(contains(page, "not finite"));
}

TEST(Html, survives_numbers_that_are_not_finite_everywhere) {
  Report report = made_up_report();
  for (Result& r : report.results) {
    r.seconds = NAN;
    for (auto& [name, m] : r.tensors) {
      m.rel_l2 = m.row_ratio = m.budget = INFINITY;
      if (m.map) std::fill(m.map->row_ratio.begin(), m.map->row_ratio.end(), NAN);
    }
    for (auto& [stage, range] : r.ranges) range.min_abs = range.max_abs = NAN;
    if (r.timing) r.timing->median = r.timing->floor = NAN;
  }
  report.roofline = Roofline{NAN, NAN};
  std::vector<HistoryPoint> history = made_up_history();
  for (HistoryPoint& p : history) p.median = INFINITY;
  const std::string page = without_assets(to_html(report, kLimit, history));
  EXPECT_EQ(misplaced(page), "");
}

TEST(Html, stays_small_when_a_report_is_large) {
  Report report = made_up_report();
  while (report.results.size() < 5000) report.results.push_back(report.results[0]);
  EXPECT_LT(to_html(report, kLimit).size(), 10'000'000u);
}

TEST(Html, marks_the_limit_it_is_given) { EXPECT_TRUE(contains(to_html(made_up_report(), 2.25), "limit 2.25")); }

}  // namespace
}  // namespace deltagauge::reports::html
