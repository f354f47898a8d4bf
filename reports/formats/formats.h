// The writers of a Report for other tools: one function a format, each in the .cc of its name. All are deterministic: the
// same report gives the same text. Bytes that are not UTF-8 and characters that XML 1.0 cannot hold become U+FFFD in all of
// them.
#pragma once
#include <string>

#include "reports/report.h"

namespace deltagauge::reports {

std::string to_junit(const Report& report);               // JUnit XML: a suite a backend, a test case a result
std::string to_sarif(const Report& report);               // SARIF 2.1.0: a result a failed or broken row
std::string to_github_annotations(const Report& report);  // workflow commands, for the standard output of a step
std::string to_github_summary(const Report& report);      // Markdown for the file that GITHUB_STEP_SUMMARY names
std::string to_openmetrics(const Report& report);         // OpenMetrics text, which Prometheus' text format includes
std::string to_csv(const Report& report);                 // RFC 4180: a row a (result, tensor)
std::string to_markdown(const Report& report);            // accuracy and timing tables
std::string to_bencher(const Report& report);             // Bencher Metric Format of the timing rows

// Google Benchmark's JSON of the timing rows. date: when it was measured, as 2026-01-31T12:00:00+00:00; a report holds none.
std::string to_gbench(const Report& report, const std::string& date);

}  // namespace deltagauge::reports
