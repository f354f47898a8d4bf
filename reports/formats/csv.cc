// CSV as RFC 4180 has it: CRLF, a heading, quotes where needed. A row a (result, tensor); a result without tensors has one
// row, and so does a run that was cut short. Fields that begin with = + - @ stay as they are: a prefix that stops
// spreadsheets from taking text for a formula would change ids, repro lines and negative numbers for every other reader.
// Import such files with the columns declared as text.
#include <vector>

#include "reports/formats/formats.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;
using Row = std::vector<std::string>;

constexpr std::size_t kMetrics = 15, kTiming = 10;  // columns that stay empty where a result has none

std::string line(const Row& row) {
  std::string text;
  for (const std::string& field : row) {
    const std::string cell = escaped(field, {{'"', "\"\""}});
    const bool quoted = cell.find_first_of(",\"\r\n") != std::string::npos;
    text += (quoted ? '"' + cell + '"' : cell) + ",";
  }
  text.back() = '\r';
  return text + "\n";
}

void append(Row& row, const Row& more) { row.insert(row.end(), more.begin(), more.end()); }

Row metrics(const std::string& tensor, const TensorMetrics& m) {
  std::string index;
  if (m.worst)
    for (const std::int64_t i : m.worst->index) index += (index.empty() ? "" : " ") + std::to_string(i);
  return {tensor,
          number(m.rel_l2),
          number(m.max_abs),
          number(m.ulp_p50),
          number(m.ulp_p99),
          number(m.ulp_max),
          number(m.row_ratio),
          number(m.element_ratio),
          number(m.worst_row),
          number(m.bias),
          std::to_string(m.non_finite),
          index,
          m.worst ? number(m.worst->got) : "",
          m.worst ? number(m.worst->want) : "",
          number(m.budget)};
}

Row timing(const Timing& t) {
  return {number(t.min),
          number(t.median),
          number(t.mean),
          number(t.p95),
          std::to_string(t.samples.size()),
          std::to_string(t.calls),
          t.settled ? "true" : "false",
          number(t.tb_s()),
          number(t.tflop_s()),
          t.floor > 0 ? number(t.roofline_percent()) : ""};
}

}  // namespace

std::string to_csv(const Report& given) {
  const Report report = with_unfinished(given);
  std::string text = line({"case",     "name",        "op",          "direction",        "backend",       "check",
                           "outcome",  "reason",      "seconds",     "tensor",           "rel_l2",        "max_abs",
                           "ulp_p50",  "ulp_p99",     "ulp_max",     "row_ratio",        "element_ratio", "worst_row",
                           "bias",     "non_finite",  "worst_index", "worst_got",        "worst_want",    "budget",
                           "time_min", "time_median", "time_mean",   "time_p95",         "samples",       "calls",
                           "settled",  "tb_s",        "tflop_s",     "roofline_percent", "repro"});
  for (const Result& r : report.results) {
    const auto add = [&](const Row& tensor) {
      Row row = {r.test,     r.name,           r.op, r.direction, r.backend, r.check, std::string(name(r.outcome)),
                 r.remark(), number(r.seconds)};
      append(row, tensor);
      append(row, r.timing ? timing(*r.timing) : Row(kTiming));
      row.push_back(r.repro);
      text += line(row);
    };
    for (const auto& [tensor, m] : r.tensors) add(metrics(tensor, m));
    if (r.tensors.empty()) add(Row(kMetrics));
  }
  return text;
}

}  // namespace deltagauge::reports
