// Markdown: an accuracy table, a row a (result, tensor), and a timing table, a row a timed result.
#include "reports/formats/markdown.h"

#include <fmt/format.h>

#include <limits>
#include <vector>

#include "reports/formats/formats.h"
#include "reports/formats/text.h"

namespace deltagauge::reports::formats {
namespace {

class Table {
 public:
  Table(std::vector<std::string> headings, std::size_t limit) : limit_(limit) {
    const std::size_t columns = headings.size();
    text_ = line(headings) + line(std::vector<std::string>(columns, "---"));
  }
  void add(const std::vector<std::string>& cells) {
    const std::string row = line(cells);
    if (text_.size() + row.size() <= limit_)
      text_ += row;
    else
      ++left_out_;
    ++rows_;
  }
  std::string text() const {
    if (!rows_) return "";
    return text_ + (left_out_ ? fmt::format("\n{} more rows do not fit here.\n", left_out_) : "");
  }

 private:
  static std::string line(const std::vector<std::string>& cells) {
    std::string text = "|";
    for (const std::string& cell : cells) text += " " + cell + " |";
    return text + "\n";
  }
  std::string text_;
  std::size_t limit_, rows_ = 0, left_out_ = 0;
};

std::string microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

}  // namespace

std::string markdown_cell(std::string_view text) {
  return escaped(text, {{'\n', "<br>"},
                        {'\r', " "},
                        {'\t', " "},
                        {'&', "&amp;"},
                        {'<', "&lt;"},
                        {'>', "&gt;"},
                        {'|', "\\|"},
                        {'\\', "\\\\"},
                        {'`', "\\`"},
                        {'*', "\\*"},
                        {'_', "\\_"},
                        {'~', "\\~"},
                        {'[', "\\["},
                        {']', "\\]"},
                        {'!', "\\!"},
                        {'#', "\\#"},
                        {'$', "\\$"}});
}

std::string markdown_accuracy(const Report& report, std::size_t limit) {
  Table table({"outcome", "case", "backend", "check", "tensor", "rel-L2", "row ratio", "element ratio", "reason"}, limit);
  for (const Result& r : report.results) {
    if (r.timing && r.tensors.empty()) continue;
    const auto add = [&](const std::string& tensor, const TensorMetrics* m) {
      table.add({std::string(name(r.outcome)), markdown_cell(r.test), markdown_cell(r.backend), markdown_cell(r.check),
                 markdown_cell(tensor), m ? fmt::format("{:.2e}", m->rel_l2) : "",
                 m ? fmt::format("{:.3g}", m->row_ratio) : "", m ? fmt::format("{:.3g}", m->element_ratio) : "",
                 markdown_cell(r.remark())});
    };
    for (const auto& [tensor, m] : r.tensors) add(tensor, &m);
    if (r.tensors.empty()) add("", nullptr);
  }
  return table.text();
}

std::string markdown_failures(const Report& report, std::size_t limit) {
  Table table({"outcome", "case", "backend", "check", "reason", "again"}, limit);
  for (const Outcome outcome : {Outcome::fail, Outcome::error})
    for (const Result& r : report.results)
      if (r.outcome == outcome)
        table.add({std::string(name(outcome)), markdown_cell(r.test), markdown_cell(r.backend), markdown_cell(r.check),
                   markdown_cell(r.reason), markdown_cell(r.repro)});
  return table.text();
}

std::string markdown_timings(const Report& report, std::size_t limit) {
  Table table({"outcome", "case", "backend", "check", "median us", "min us", "p95 us", "TB/s", "TFLOP/s", "% of roofline"},
              limit);
  for (const Result& r : report.results) {
    if (!r.timing) continue;
    const Timing& t = *r.timing;
    table.add({std::string(name(r.outcome)), markdown_cell(r.test), markdown_cell(r.backend), markdown_cell(r.check),
               microseconds(t.median), microseconds(t.min), microseconds(t.p95), fmt::format("{:.3g}", t.tb_s()),
               fmt::format("{:.3g}", t.tflop_s()), t.floor > 0 ? fmt::format("{:.1f}", t.roofline_percent()) : ""});
  }
  return table.text();
}

}  // namespace deltagauge::reports::formats

namespace deltagauge::reports {

std::string to_markdown(const Report& report) {
  constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();
  const std::string verdicts = formats::markdown_accuracy(report, kNoLimit);
  const std::string timings = formats::markdown_timings(report, kNoLimit);
  std::string text;
  if (report.jobs_left) text += fmt::format("**Unfinished:** {} jobs left\n\n", report.jobs_left);
  if (!verdicts.empty()) text += "## Accuracy\n\n" + verdicts;
  if (!timings.empty()) text += (verdicts.empty() ? "" : "\n") + std::string("## Timings\n\n") + timings;
  return text;
}

}  // namespace deltagauge::reports
