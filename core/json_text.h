// What a JSON parser lets pass and a reader of configs and reports must not: a NUL byte, behind which nlohmann's parser
// stops, and a key that stands twice in one object, of which it keeps one.
#pragma once
#include <string_view>

namespace deltagauge {

enum class JsonPath { dollar, pointer };  // $.grid[0].axes or #/grid/0/axes, as messages name a place

// Throws Error that names the byte or the place. JSON that is broken otherwise is left to the parser.
void check_json_text(std::string_view json, JsonPath style);

}  // namespace deltagauge
