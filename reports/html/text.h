// Text for a page: escaping, hashes for its security policy, numbers.
#pragma once
#include <string>
#include <string_view>

namespace deltagauge::reports::html {

// Valid UTF-8 that shows what it holds: wrong bytes become U+FFFD, control characters their pictures (U+2400...), characters
// that change the direction of the text "\u202e" and the like. Tabs and newlines stay.
std::string visible(std::string_view bytes);
std::string escape(std::string_view bytes);  // visible, for element content and quoted attributes

std::string shortened(std::string_view bytes, std::size_t most);  // at most that many bytes before an ellipsis

std::string base64(std::string_view bytes);
std::string csp_hash(std::string_view content);  // 'sha256-...', quotes included

std::string number(double x);  // four significant digits
std::string microseconds(double seconds);
std::string power_of_two(double x);                                              // "2^-14", "1.5 x 2^3"
std::string count(std::int64_t n, std::string_view one, std::string_view many);  // "1 result", "3 results"

}  // namespace deltagauge::reports::html
