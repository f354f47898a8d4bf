// Failures in words, and the table of all results.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "reports/html/sections.h"
#include "reports/html/text.h"
#include "reports/locate.h"

namespace deltagauge::reports::html {
namespace {

constexpr std::size_t kMostFailures = 200, kOpenFailures = 5;

std::string tensor_words(const Result& r, const std::string& tensor, const TensorMetrics& m) {
  std::string text =
      fmt::format("<li><b>{}</b>: worst row error {} of its budget {}, worst element {} of its share; rel-L2 {}",
                  escape(tensor), number(m.row_ratio), number(m.budget), number(m.element_ratio), number(m.rel_l2));
  if (!m.budget_from.empty()) text += "<br>budget: " + escape(m.budget_from);
  if (m.non_finite)
    text += fmt::format("<br>{} not finite where the right value is", count(m.non_finite, "value is", "values are"));
  if (m.worst)
    text += fmt::format("<br>at {}<br>expected {:.9g}, got {:.9g}", escape(locate(r.test, tensor, m.worst->index)),
                        m.worst->want, m.worst->got);
  return text + "</li>\n";
}

std::string in_words(const Result& r, std::size_t place) {
  std::string text =
      fmt::format("<details{}><summary><span class=\"{}\">{}</span> {} {}<br><code>{}</code>{}</summary>\n",
                  place < kOpenFailures ? " open" : "", name(r.outcome), r.outcome == Outcome::fail ? "FAILED" : "BROKEN",
                  escape(r.backend), escape(r.check), escape(r.test), r.name.empty() ? "" : "<br>" + escape(r.name));
  text += "<p class=\"reason\">" + escape(r.reason) + "</p>\n";
  std::vector<const std::pair<const std::string, TensorMetrics>*> tensors;
  for (const auto& entry : r.tensors) tensors.push_back(&entry);
  std::stable_sort(tensors.begin(), tensors.end(),
                   [](const auto* a, const auto* b) { return worse(a->second.row_ratio, b->second.row_ratio); });
  if (!tensors.empty()) {
    text += "<ul>\n";
    for (const auto* entry : tensors) text += tensor_words(r, entry->first, entry->second);
    text += "</ul>\n";
  }
  if (!r.repro.empty()) text += "<p>To see it again:</p><pre tabindex=\"0\"><code>" + escape(r.repro) + "</code></pre>\n";
  return text + "</details>\n";
}

std::string choice(const std::string& id, const std::string& label, const std::set<std::string>& values) {
  std::string text = fmt::format("<label>{} <select id=\"{}\"><option value=\"\">all</option>", label, id);
  for (const std::string& value : values) text += fmt::format("<option value=\"{0}\">{0}</option>", escape(value));
  return text + "</select></label>\n";
}

std::string filter_form(const Report& report) {
  std::set<std::string> outcomes, backends, checks;
  for (const Result& r : report.results) {
    outcomes.emplace(name(r.outcome));
    backends.insert(r.backend);
    checks.insert(r.check);
  }
  return "<form id=\"filter\" role=\"search\" aria-label=\"Filter results\" hidden>\n"
         "<label>Text <input id=\"filter-text\" type=\"search\" autocomplete=\"off\" spellcheck=\"false\"></label>\n" +
         choice("filter-outcome", "Outcome", outcomes) + choice("filter-backend", "Backend", backends) +
         choice("filter-check", "Check", checks) +
         "<button type=\"reset\">Show all</button>\n<output id=\"shown\" role=\"status\"></output>\n</form>\n";
}

std::string row(const Result& r) {
  std::string tensor, rel_l2, ratio, element;
  if (const auto* worst = tightest(r)) {
    const TensorMetrics& m = worst->second;
    tensor = escape(worst->first), rel_l2 = fmt::format("{:.2e}", m.rel_l2);
    ratio = fmt::format("{:.3g}", m.row_ratio), element = fmt::format("{:.3g}", m.element_ratio);
  }
  return fmt::format(
      "<tr><td class=\"{0}\">{0}<td>{1}{2}<td>{3}<td>{4}<td>{5}<td class=\"n\">{6}<td class=\"n\">{7}<td class=\"n\">{8}"
      "<td class=\"n\">{9:.2f}<td>{10}\n",
      name(r.outcome), escape(r.test), r.name.empty() ? "" : "<br><i>" + escape(r.name) + "</i>", escape(r.backend),
      escape(r.check), tensor, rel_l2, ratio, element, r.seconds, escape(r.remark()));
}

}  // namespace

const std::pair<const std::string, TensorMetrics>* tightest(const Result& result) {
  const auto worst = std::max_element(result.tensors.begin(), result.tensors.end(), [](const auto& a, const auto& b) {
    return worse(b.second.row_ratio, a.second.row_ratio);
  });
  return worst == result.tensors.end() ? nullptr : &*worst;
}

void add_failures(Page& page, const Report& report) {
  std::size_t found = 0;
  std::string text;
  for (const Outcome wanted : {Outcome::fail, Outcome::error})
    for (const Result& r : report.results)
      if (r.outcome == wanted && found++ < kMostFailures) text += in_words(r, found - 1);
  if (!found) return;
  page.open("failures", "What failed or broke");
  page.body += text;
  if (found > kMostFailures)
    page.body += fmt::format("<p>The first {} of {}; the table below holds the others.</p>\n", kMostFailures, found);
  page.close();
}

void add_results(Page& page, const Report& report) {
  if (report.results.empty()) return;
  page.open("results", "Results");
  page.body += filter_form(report);
  page.body +=
      "<div class=\"scroll tall\" tabindex=\"0\" role=\"region\" aria-label=\"Table of results\">\n"
      "<table id=\"table\"><caption>One row per case, backend and check, with its tensor nearest to (or furthest over) the "
      "budget</caption>\n<colgroup><col class=\"w5\"><col class=\"w26\"><col class=\"w14\"><col class=\"w8\">"
      "<col class=\"w8\"><col class=\"w6\"><col class=\"w5\"><col class=\"w6\"><col class=\"w6\"><col "
      "class=\"w16\"></colgroup>\n"
      "<thead><tr>";
  for (const char* head :
       {"Outcome", "Case", "Backend", "Check", "Tensor", "rel-L2", "Row ratio", "Element ratio", "Seconds", "Reason"})
    page.body += fmt::format("<th scope=\"col\">{}</th>", head);
  page.body += "</tr></thead>\n<tbody>\n";
  for (const Result& r : report.results) page.body += row(r);
  page.body += "</tbody></table></div>\n";
  page.close();
}

}  // namespace deltagauge::reports::html
