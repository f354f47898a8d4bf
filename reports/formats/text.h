// Text that every writer shares: what may stand in any format, numbers, escaping, and where a result comes from.
#pragma once
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "reports/report.h"

namespace deltagauge::reports::formats {

// Bytes that are not UTF-8 and characters that XML 1.0 cannot hold (controls but tab, LF and CR; U+FFFE, U+FFFF) become
// U+FFFD.
std::string clean(std::string_view text);

// clean(text), where every character that has a substitute is replaced by it.
std::string escaped(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> substitutes);

std::string number(double x);  // the shortest that reads back; nan, inf or -inf

// case/backend/check; one that is longer than 1024 bytes is cut and ends in a hash, so that two of them stay apart.
std::string benchmark_name(const Result& result);

// The report, with an error more where jobs are left, of a backend "deltagauge": for formats whose readers look at results
// and at nothing else.
Report with_unfinished(Report report);

// The config that a result must have come from: the report's only one, or the only one in a folder named after the op.
// Empty when several could be meant, or none.
std::string config_of(const Report& report, const Result& result);

}  // namespace deltagauge::reports::formats
