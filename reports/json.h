// The JSON form of a Report, deltagauge.report/1 (reports/schema/report-1.json): writer and reader. Keys stand in a fixed
// order. JSON has no NaN and no infinities, so those numbers are the strings "nan", "inf" and "-inf".
#pragma once
#include <string>
#include <string_view>

#include "reports/report.h"

namespace deltagauge::reports {

std::string to_json(const Report& report);  // indented, ends in a newline; bytes that are not UTF-8 become U+FFFD

// Throws Error that starts with path and names the place in the JSON: another schema, a missing or unknown key, a wrong
// type, a summary that does not match the results.
Report parse_report(std::string_view json, const std::string& path);
Report load_report(const std::string& path);

}  // namespace deltagauge::reports
