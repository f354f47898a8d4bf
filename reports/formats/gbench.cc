// Google Benchmark's JSON of the timing rows, for the tools that read it: a family a row, an entry a sample (its
// repetitions), and the aggregates. cpu_time is real_time throughout: the host only waits, and some readers look at cpu_time
// alone. JSON has no NaN and no infinities, and the readers ask for numbers: such entries are left out.
#include <cmath>
#include <nlohmann/json.hpp>

#include "reports/formats/formats.h"
#include "reports/formats/text.h"

namespace deltagauge::reports {
namespace {

using namespace formats;
using Json = nlohmann::ordered_json;

Json entry(const Result& r, std::size_t family, const std::string& suffix) {
  const std::string run = benchmark_name(r);
  return {{"name", run + suffix},
          {"family_index", family},
          {"per_family_instance_index", 0},
          {"run_name", run},
          {"run_type", suffix.empty() ? "iteration" : "aggregate"},
          {"repetitions", r.timing->samples.size()}};
}

void add(Json& benchmarks, Json row, double time, std::int64_t iterations) {
  if (!std::isfinite(time)) return;
  row["threads"] = 1;
  row["iterations"] = iterations;
  row["real_time"] = row["cpu_time"] = time;
  row["time_unit"] = "us";
  benchmarks.push_back(row);
}

// Of the samples, n - 1 in the denominator; 0 for fewer than two, as Google Benchmark has it.
double deviation(const Timing& t) {
  if (t.samples.size() < 2) return 0;
  double sum = 0;
  for (const double x : t.samples) sum += (x - t.mean) * (x - t.mean);
  return std::sqrt(sum / static_cast<double>(t.samples.size() - 1));
}

void add_row(Json& benchmarks, const Result& r, std::size_t family) {
  const Timing& t = *r.timing;
  for (std::size_t i = 0; i < t.samples.size(); ++i) {
    Json row = entry(r, family, "");
    row["repetition_index"] = i;
    if (r.outcome != Outcome::pass) row["label"] = clean(std::string(name(r.outcome)) + ": " + r.reason);
    if (const double rate = t.bytes / t.samples[i] * 1e-12; std::isfinite(rate)) row["tb_s"] = rate;
    if (const double rate = t.flops / t.samples[i] * 1e-12; std::isfinite(rate)) row["tflop_s"] = rate;
    add(benchmarks, std::move(row), t.samples[i] * 1e6, t.calls);
  }
  const auto aggregate = [&](const char* which, const char* unit, double value) {
    Json row = entry(r, family, std::string("_") + which);
    row["aggregate_name"] = which;
    row["aggregate_unit"] = unit;
    add(benchmarks, std::move(row), value, static_cast<std::int64_t>(t.samples.size()));
  };
  aggregate("mean", "time", t.mean * 1e6);
  aggregate("median", "time", t.median * 1e6);
  aggregate("stddev", "time", deviation(t) * 1e6);
  aggregate("cv", "percentage", deviation(t) / t.mean);
}

}  // namespace

std::string to_gbench(const Report& report, const std::string& date) {
  Json benchmarks = Json::array();
  std::size_t family = 0;
  for (const Result& r : report.results)
    if (r.timing) add_row(benchmarks, r, family++);
  // A report keeps no host name, no clock of the processor and no caches: readers that compare machines see the device.
  const Json context = {{"date", clean(date)},
                        {"host_name", clean(report.device ? report.device->name : report.host.cpu)},
                        {"executable", report.argv.empty() ? "deltagauge" : clean(report.argv[0])},
                        {"num_cpus", report.host.threads},
                        {"mhz_per_cpu", 0},
                        {"cpu_scaling_enabled", false},
                        {"caches", Json::array()},
                        {"load_avg", Json::array()},
                        {"library_version", clean(report.tool.version)},
                        {"library_build_type", "release"},
                        {"json_schema_version", 1},
                        {"git_sha", clean(report.tool.git_sha)},
                        {"jobs_left", report.jobs_left}};
  return Json{{"context", context}, {"benchmarks", benchmarks}}.dump(1) + "\n";
}

}  // namespace deltagauge::reports
