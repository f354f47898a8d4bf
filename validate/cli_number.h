// What a number on the command line must be: finite, in range, as a program would print it. CLI11's own checks take nan, and
// its conversion cuts an integer past 64 bits off and reads 010 as octal.
#pragma once
#include <charconv>
#include <cmath>
#include <cstdint>
#include <sstream>
#include <string>

namespace deltagauge::validate::cli {

// "", or what was expected and what was got: what CLI11 wants of a check.
inline std::string not_positive(const std::string& text) {
  double value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc() && read.ptr == text.data() + text.size() && std::isfinite(value) && value > 0) return {};
  return "expected a finite number above 0, got '" + text + "'";
}
inline std::string not_within(std::int64_t least, std::int64_t most, const std::string& text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc() && std::to_string(value) == text && value >= least && value <= most) return {};
  std::ostringstream why;
  why << "expected an integer in [" << least << ", " << most << "], got '" << text << "'";
  return why.str();
}

}  // namespace deltagauge::validate::cli
