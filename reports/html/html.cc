#include "reports/html/html.h"

#include <fmt/format.h>

#include <map>

#include "reports/html/assets.h"
#include "reports/html/sections.h"
#include "reports/html/text.h"

namespace deltagauge::reports::html {
namespace {

struct Outline {
  const char *style, *word;
  std::string sentence;
};

Outline outcome_of(const Report::Summary& s) {
  if (s.failed) return {"fail", "FAILED", fmt::format("{} of {} failed", s.failed, count(s.judged, "verdict", "verdicts"))};
  if (s.errors) return {"error", "BROKEN", count(s.errors, "row", "rows") + " broke"};
  if (s.judged) return {"pass", "PASSED", count(s.judged, "verdict", "verdicts") + " passed"};
  return {"skip", "NOTHING JUDGED", "no verdict was reached"};
}

std::string fact(const std::string& term, const std::string& markup) {
  return markup.empty() ? "" : "<dt>" + term + "</dt><dd>" + markup + "</dd>\n";
}

std::string versions(int packed) { return fmt::format("{}.{}", packed / 1000, packed % 1000 / 10); }

std::string facts(const Report& report) {
  const Tool& tool = report.tool;
  std::string archs, command, configs, device;
  for (const std::string& arch : tool.cuda_archs) archs += (archs.empty() ? "" : " ") + escape(arch);
  for (const std::string& word : report.argv) command += (command.empty() ? "" : " ") + escape(word);
  for (const ConfigFile& c : report.configs)
    configs += fmt::format("{}<code>{}</code> <small>SHA-256 <code>{}</code></small>", configs.empty() ? "" : "<br>",
                           escape(c.path), escape(c.sha256));
  if (const auto& d = report.device)
    device = fmt::format("{}, SM {}.{}, {} SMs, driver {}, CUDA runtime {}, clocks {} MHz and {} MHz memory",
                         escape(d->name), d->sm / 10, d->sm % 10, d->sm_count, versions(d->driver), versions(d->runtime),
                         d->clock_mhz, d->memory_mhz);
  return "<dl>\n" +
         fact("Tool", fmt::format("deltagauge {}, commit <code>{}</code>{}", escape(tool.version), escape(tool.git_sha),
                                  tool.dirty ? " with changes that are not committed" : "")) +
         fact("Compiler", escape(tool.compiler)) + fact("Built for", archs.empty() ? "" : "SM " + archs) +
         fact("Device", report.device ? device : "none") +
         fact("Host", fmt::format("{}, {}, {}", escape(report.host.os), escape(report.host.cpu),
                                  count(report.host.threads, "thread", "threads"))) +
         fact("Configs", configs) + fact("Shard", report.shard ? to_string(*report.shard) : "") +
         fact("Unfinished", report.jobs_left ? count(report.jobs_left, "job", "jobs") + " left" : "") +
         fact("Command", command.empty() ? "" : "<code>" + command + "</code>") + "</dl>\n";
}

std::string summary(const Report& report) {
  const auto s = report.summary();
  const Outline outcome = report.jobs_left && !s.failed
                              ? Outline{"error", "UNFINISHED", count(report.jobs_left, "job", "jobs") + " left"}
                              : outcome_of(s);
  std::string text = fmt::format("<p class=\"outcome {}\"><strong>{}:</strong> {}</p>\n<ul class=\"counts\">", outcome.style,
                                 outcome.word, outcome.sentence);
  const auto add = [&](std::int64_t n, const char* what, const char* style) {
    text += fmt::format("<li><b>{}</b> <span class=\"{}\">{}</span></li>", n, n ? style : "", what);
  };
  add(s.judged, "judged", ""), add(s.passed, "passed", "pass"), add(s.failed, "failed", "fail");
  add(s.skipped, "skipped", "skip"), add(s.errors, "errors", "error");
  text += "</ul>\n";
  std::map<std::string, std::int64_t> skips;
  for (const Result& r : report.results)
    if (r.outcome == Outcome::skip) ++skips[r.reason];
  std::vector<std::vector<std::string>> rows;
  for (const auto& [reason, n] : skips) rows.push_back({std::to_string(n), escape(reason)});
  if (!rows.empty()) text += folded("Why rows were skipped", table_of("Skipped rows by reason", {"Rows", "Reason"}, rows));
  return text + facts(report);
}

std::string footer(const Report& report) {
  std::string text = fmt::format("<footer>\n<p>Made by deltagauge {}. This page loads nothing from anywhere.</p>\n",
                                 escape(report.tool.version));
  if (!has_interactive_plots())
    return text +
           "<p>Interactive plots were not built in (npm was missing when deltagauge was built); the plots are static.</p>\n"
           "</footer>\n";
  return text +
         folded("Plots: uPlot, under the MIT license", fmt::format("<pre tabindex=\"0\">{}</pre>", escape(kUplotLicense))) +
         "</footer>\n";
}

}  // namespace

void Page::open(const std::string& id, const std::string& title) {
  links += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", id, title);
  body += fmt::format("<section id=\"{0}\" aria-labelledby=\"{0}-title\">\n<h2 id=\"{0}-title\">{1}</h2>\n", id, title);
}

void Page::add(const Chart& chart, const std::string& extra) {
  body += figure(chart, charts.size(), extra);
  charts.push_back(json(chart));
}

std::string table_of(const std::string& caption, const std::vector<std::string>& head,
                     const std::vector<std::vector<std::string>>& rows) {
  std::string text = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{0}\"><table><caption>{0}</caption>"
      "<thead><tr>",
      escape(caption));
  for (const std::string& cell : head) text += "<th scope=\"col\">" + escape(cell) + "</th>";
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row) text += "<td>" + cell;
    text += "\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string folded(const std::string& what, const std::string& content) {
  return "<details><summary>" + escape(what) + "</summary>\n" + content + "</details>\n";
}

bool has_interactive_plots() { return !kUplotJs.empty(); }

std::string to_html(const Report& report, double row_limit, std::span<const HistoryPoint> history) {
  Page page;
  add_failures(page, report);
  add_results(page, report);
  add_maps(page, report, row_limit);
  add_ranges(page, report);
  add_timings(page, report);
  add_history(page, history);

  const std::string style = std::string(kUplotCss) + std::string(kPageCss);
  std::string scripts = "<script>" + std::string(kPageJs) + "</script>\n", allowed = csp_hash(kPageJs);
  if (has_interactive_plots()) {
    scripts = "<script>" + std::string(kUplotJs) + "</script>\n" + scripts;
    allowed = csp_hash(kUplotJs) + " " + allowed;
  }
  std::string charts;
  for (const std::string& chart : page.charts) charts += (charts.empty() ? "" : ",\n") + chart;
  const std::string title = "Deltagauge report: " + outcome_of(report.summary()).sentence;
  std::string out =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src " +
      allowed + "; style-src " + csp_hash(style) + "; base-uri 'none'; form-action 'none'\">\n" +
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<meta name=\"referrer\" content=\"no-referrer\">\n" +
      "<title>" + escape(title) + "</title>\n<style>" + style + "</style>\n</head>\n<body>\n" +
      "<a class=\"skip-link\" href=\"#main\">Skip to the report</a>\n<header><h1>" + escape(title) + "</h1>\n";
  if (!page.links.empty()) out += "<nav aria-label=\"Parts of the report\"><ul>\n" + page.links + "</ul></nav>\n";
  out +=
      "</header>\n<main id=\"main\">\n<section id=\"summary\" aria-labelledby=\"summary-title\">\n"
      "<h2 id=\"summary-title\">Summary</h2>\n";
  out += summary(report) + "</section>\n" + page.body + "</main>\n" + footer(report);
  out += "<script type=\"application/json\" id=\"charts\">[" + charts + "]</script>\n";
  return out + scripts + "</body>\n</html>\n";
}

}  // namespace deltagauge::reports::html
