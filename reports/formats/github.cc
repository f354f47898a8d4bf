// GitHub Actions: annotations as workflow commands, and a step summary in GitHub's Markdown.
#include <fmt/format.h>

#include <vector>

#include "reports/formats/formats.h"
#include "reports/formats/markdown.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;

constexpr std::size_t kAnnotations = 10;      // GitHub shows this many of a kind and step, and drops the rest
constexpr std::size_t kTableBytes = 400'000;  // a step summary of two such tables stays below GitHub's 1 MiB

std::string message(std::string_view text) { return escaped(text, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}}); }

std::string property(std::string_view text) {
  return escaped(text, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}});
}

std::string error_line(const Report& report, const Result& r) {
  const std::string config = config_of(report, r);
  std::string text = r.test + ": " + r.reason;
  if (!r.repro.empty()) text += "\nagain: " + r.repro;
  return fmt::format("::error {}title={}::{}\n", config.empty() ? "" : "file=" + property(config) + ",",
                     property(r.backend + " " + r.check + (r.outcome == Outcome::fail ? " failed" : " broke")),
                     message(text));
}

}  // namespace

std::string to_github_annotations(const Report& report) {
  std::vector<std::string> errors;
  for (const Outcome outcome : {Outcome::fail, Outcome::error})  // verdicts first: they may be all that is shown
    for (const Result& r : report.results)
      if (r.outcome == outcome) errors.push_back(error_line(report, r));
  if (errors.size() > kAnnotations) {
    const std::size_t more = errors.size() - (kAnnotations - 1);
    errors.resize(kAnnotations - 1);
    errors.push_back(fmt::format("::error title=deltagauge::{} more rows failed or broke\n", more));
  }
  std::string text;
  for (const std::string& line : errors) text += line;
  const auto s = report.summary();
  if (report.jobs_left) text += fmt::format("::error title=deltagauge::unfinished, {} jobs left\n", report.jobs_left);
  if (s.skipped) text += fmt::format("::notice title=deltagauge::{} rows were skipped\n", s.skipped);
  if (report.exit_status() == 3) text += "::warning title=deltagauge::nothing was judged\n";
  return text;
}

std::string to_github_summary(const Report& report) {
  const auto s = report.summary();
  std::string text = fmt::format("## deltagauge: {}\n\n", s.failed           ? "failed"
                                                          : report.jobs_left ? "unfinished"
                                                          : s.errors         ? "broken"
                                                          : s.judged         ? "passed"
                                                                             : "nothing was judged");
  text += "| judged | passed | failed | skipped | errors |\n|---:|---:|---:|---:|---:|\n";
  text += fmt::format("| {} | {} | {} | {} | {} |\n", s.judged, s.passed, s.failed, s.skipped, s.errors);
  if (const std::string failures = markdown_failures(report, kTableBytes); !failures.empty())
    text += "\n### Failed and broken\n\n" + failures;
  if (const std::string timings = markdown_timings(report, kTableBytes); !timings.empty())
    text += "\n### Timings\n\n" + timings;
  return text;
}

}  // namespace deltagauge::reports
