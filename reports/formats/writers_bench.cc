// Time of the writers on a report of 2000 rows, and of the JSON reader (bytes: of the text).
#include <benchmark/benchmark.h>

#include "reports/formats/formats.h"
#include "reports/json.h"
#include "reports/sample_report.h"
#include "reports/table.h"

namespace deltagauge::reports {
namespace {

Report large_report() {
  Report report = sample_report();
  const auto rows = report.results;
  while (report.results.size() < 2000) report.results.insert(report.results.end(), rows.begin(), rows.end());
  return report;
}

template <class Write>
void write(benchmark::State& state, Write writer) {
  const Report report = large_report();
  std::size_t bytes = 0;
  for (auto _ : state) {
    const std::string text = writer(report);
    bytes += text.size();
    benchmark::DoNotOptimize(text.data());
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes));
}
void read(benchmark::State& state) {
  const std::string text = to_json(large_report());
  for (auto _ : state) benchmark::DoNotOptimize(parse_report(text, "report.json"));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

BENCHMARK_CAPTURE(write, json, to_json)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, junit, to_junit)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, sarif, to_sarif)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, openmetrics, to_openmetrics)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, csv, to_csv)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, markdown, to_markdown)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(write, table, [](const Report& r) { return table(r, {}); })->Unit(benchmark::kMillisecond);
BENCHMARK(read)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace deltagauge::reports
