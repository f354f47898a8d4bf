// Tables in GitHub's Markdown, shared by the Markdown writer and the step summary. Each is empty when it has no rows; rows
// that would make it longer than limit bytes are counted below it.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

#include "reports/report.h"

namespace deltagauge::reports::formats {

std::string markdown_cell(std::string_view text);  // shows text as it is, on one line
std::string markdown_accuracy(const Report& report, std::size_t limit);
std::string markdown_failures(const Report& report, std::size_t limit);
std::string markdown_timings(const Report& report, std::size_t limit);

}  // namespace deltagauge::reports::formats
