// Whole files: reading, and writing so that a reader sees the old file or the new one, never half of it.
#pragma once
#include <string>
#include <string_view>

namespace deltagauge::reports {

std::string read_file(const std::string& path);                      // throws Error with the path and the reason
void write_file(const std::string& path, std::string_view content);  // temporary file beside it, then rename; throws Error
void require_writable_directory(const std::string& path);            // makes it when missing; throws Error

}  // namespace deltagauge::reports
