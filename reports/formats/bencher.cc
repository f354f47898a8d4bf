// Bencher Metric Format of the timing rows. latency in nanoseconds and throughput in calls per second, the units of
// Bencher's own measures of these names; lower and upper are the fastest sample and the 95th percentile. A measure whose
// value is not finite is left out.
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/formats/formats.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;
using Json = nlohmann::ordered_json;

void add(Json& measures, const char* measure, double value, double lower, double upper) {
  if (!std::isfinite(value)) return;
  Json& metric = measures[measure];
  metric["value"] = value;
  if (std::isfinite(lower)) metric["lower_value"] = lower;
  if (std::isfinite(upper)) metric["upper_value"] = upper;
}

}  // namespace

std::string to_bencher(const Report& report) {
  Json root = Json::object();
  for (const Result& r : report.results) {
    if (!r.timing) continue;
    const Timing& t = *r.timing;
    Json measures = Json::object();
    add(measures, "latency", t.median * 1e9, t.min * 1e9, t.p95 * 1e9);
    add(measures, "throughput", 1 / t.median, 1 / t.p95, 1 / t.min);
    if (t.bytes > 0) add(measures, "tb_s", t.tb_s(), t.bytes / t.p95 * 1e-12, t.bytes / t.min * 1e-12);
    if (t.flops > 0) add(measures, "tflop_s", t.tflop_s(), t.flops / t.p95 * 1e-12, t.flops / t.min * 1e-12);
    if (!measures.empty()) root[benchmark_name(r)] = measures;
  }
  return root.dump(1) + "\n";
}

}  // namespace deltagauge::reports
