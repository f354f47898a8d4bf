// OpenMetrics text. Everything is a gauge: a report is the state of one run, and nothing in it grows from one to the next.
// Names and units are Prometheus' base units; where a label set occurs twice, the later row stands.
#include <cmath>
#include <map>
#include <vector>

#include "reports/formats/formats.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;

using Labels = std::vector<std::pair<std::string, std::string>>;

struct Family {
  std::string name, unit, help;                // unit: empty, or the end of the name
  std::map<std::string, double> samples = {};  // by labels as text
};

// A carriage return has no escape, and some readers end a line at it.
std::string text_of(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels)
    text += (text.empty() ? "" : ",") + key + "=\"" +
            escaped(value, {{'\\', "\\\\"}, {'"', "\\\""}, {'\n', "\\n"}, {'\r', "\xef\xbf\xbd"}}) + "\"";
  return text;
}

std::string value_of(double x) {
  if (std::isnan(x)) return "NaN";
  if (std::isinf(x)) return x > 0 ? "+Inf" : "-Inf";
  return number(x);
}

std::string text_of(const Family& family) {
  if (family.samples.empty()) return "";
  std::string text = "# HELP " + family.name + " " + family.help + "\n# TYPE " + family.name + " gauge\n";
  if (!family.unit.empty()) text += "# UNIT " + family.name + " " + family.unit + "\n";
  for (const auto& [labels, value] : family.samples)
    text += family.name + (labels.empty() ? "" : "{" + labels + "}") + " " + value_of(value) + "\n";
  return text;
}

}  // namespace

std::string to_openmetrics(const Report& report) {
  Family build = {"deltagauge_build_info", "", "What judged; always 1."};
  Family results = {"deltagauge_results", "", "Results by outcome."};
  Family left = {"deltagauge_jobs_left", "", "Jobs that an interrupt or a crash kept from being run."};
  Family row = {"deltagauge_row_ratio", "ratio", "Worst row error over its budget."};
  Family element = {"deltagauge_element_ratio", "ratio", "Worst element error over its share of the row budget."};
  Family rel_l2 = {"deltagauge_rel_l2", "", "Relative L2 error."};
  Family median = {"deltagauge_time_median_seconds", "seconds", "Median time of one call."};
  Family bytes = {"deltagauge_bytes_per_second", "bytes_per_second", "Least bytes the op needs over the median time."};
  Family flops = {"deltagauge_flops_per_second", "flops_per_second", "Least flops the op needs over the median time."};

  build.samples[text_of({{"version", report.tool.version},
                         {"git_sha", report.tool.git_sha},
                         {"dirty", report.tool.dirty ? "true" : "false"},
                         {"device", report.device ? report.device->name : ""}})] = 1;
  left.samples[""] = static_cast<double>(report.jobs_left);
  for (const Outcome outcome : {Outcome::pass, Outcome::fail, Outcome::skip, Outcome::error})
    results.samples[text_of({{"outcome", std::string(name(outcome))}})] = 0;
  for (const Result& r : report.results) {
    results.samples[text_of({{"outcome", std::string(name(r.outcome))}})] += 1;
    Labels labels = {{"case", r.test}, {"backend", r.backend}, {"check", r.check}};
    if (r.timing) {
      const std::string key = text_of(labels);
      median.samples[key] = r.timing->median;
      bytes.samples[key] = r.timing->tb_s() * 1e12;
      flops.samples[key] = r.timing->tflop_s() * 1e12;
    }
    labels.emplace_back("tensor", "");
    for (const auto& [tensor, m] : r.tensors) {
      labels.back().second = tensor;
      const std::string key = text_of(labels);
      row.samples[key] = m.row_ratio;
      element.samples[key] = m.element_ratio;
      rel_l2.samples[key] = m.rel_l2;
    }
  }
  std::string text;
  for (const Family* family : {&build, &results, &left, &row, &element, &rel_l2, &median, &bytes, &flops})
    text += text_of(*family);
  return text + "# EOF\n";
}

}  // namespace deltagauge::reports
