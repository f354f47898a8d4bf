// JUnit XML: <testsuites> of one <testsuite> a backend, in the order of their first results; a <testcase> a result.
// A run that was cut short has an error of its own.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <pugixml.hpp>
#include <sstream>

#include "reports/formats/formats.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;

using Node = pugi::xml_node;

void set(Node node, const char* attribute, const std::string& value) {
  node.append_attribute(attribute).set_value(clean(value).c_str());
}

void add_property(Node properties, const std::string& name, const std::string& value) {
  Node property = properties.append_child("property");
  set(property, "name", name);
  set(property, "value", value);
}

double finite(double seconds) { return std::isfinite(seconds) ? seconds : 0; }

// Counts and time of the results of one backend, or of all when backend is null.
void count(Node node, const Report& report, const std::string* backend) {
  Report counted;
  double seconds = 0;
  for (const Result& r : report.results) {
    if (backend && r.backend != *backend) continue;
    counted.results.emplace_back().outcome = r.outcome;
    seconds += finite(r.seconds);
  }
  const auto s = counted.summary();
  set(node, "tests", std::to_string(counted.results.size()));
  set(node, "failures", std::to_string(s.failed));
  set(node, "errors", std::to_string(s.errors));
  set(node, "skipped", std::to_string(s.skipped));
  set(node, "time", fmt::format("{:.6f}", seconds));
}

void add_metrics(Node test, const Result& r) {
  if (r.tensors.empty() && !r.timing) return;
  Node properties = test.append_child("properties");
  for (const auto& [tensor, m] : r.tensors) {
    add_property(properties, "row_ratio." + tensor, number(m.row_ratio));
    add_property(properties, "element_ratio." + tensor, number(m.element_ratio));
    add_property(properties, "rel_l2." + tensor, number(m.rel_l2));
  }
  if (!r.timing) return;
  add_property(properties, "time_median_seconds", number(r.timing->median));
  add_property(properties, "time_min_seconds", number(r.timing->min));
  add_property(properties, "time_p95_seconds", number(r.timing->p95));
  add_property(properties, "tb_s", number(r.timing->tb_s()));
  add_property(properties, "tflop_s", number(r.timing->tflop_s()));
}

void add_result(Node suite, const Result& r) {
  Node test = suite.append_child("testcase");
  set(test, "name", r.test + " [" + r.check + "]");
  set(test, "classname", r.backend);
  set(test, "time", fmt::format("{:.6f}", finite(r.seconds)));
  add_metrics(test, r);
  if (r.outcome == Outcome::pass) return;
  Node child = test.append_child(r.outcome == Outcome::fail ? "failure" : r.outcome == Outcome::error ? "error" : "skipped");
  set(child, "message", r.reason);
  if (r.outcome == Outcome::skip) return;
  set(child, "type", r.check);
  child.text().set(clean(r.reason + (r.repro.empty() ? "" : "\nagain: " + r.repro)).c_str());
}

}  // namespace

std::string to_junit(const Report& given) {
  const Report report = with_unfinished(given);
  std::vector<std::string> backends;
  for (const Result& r : report.results)
    if (std::find(backends.begin(), backends.end(), r.backend) == backends.end()) backends.push_back(r.backend);

  pugi::xml_document document;
  Node declaration = document.append_child(pugi::node_declaration);
  set(declaration, "version", "1.0");
  set(declaration, "encoding", "UTF-8");
  Node suites = document.append_child("testsuites");
  set(suites, "name", "deltagauge");
  count(suites, report, nullptr);
  for (const std::string& backend : backends) {
    Node suite = suites.append_child("testsuite");
    set(suite, "name", backend);
    count(suite, report, &backend);
    Node properties = suite.append_child("properties");
    add_property(properties, "version", report.tool.version);
    add_property(properties, "git_sha", report.tool.git_sha);
    if (report.device) add_property(properties, "device", report.device->name);
    for (const Result& r : report.results)
      if (r.backend == backend) add_result(suite, r);
  }
  std::ostringstream text;
  document.save(text, " ", pugi::format_default, pugi::encoding_utf8);
  return text.str();
}

}  // namespace deltagauge::reports
