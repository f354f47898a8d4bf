// Where an element of a tensor is, in the words of the problem.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace deltagauge {
struct Problem;
}

namespace deltagauge::reports {

// "[70, 3, 17]: sequence 1, token 7 (chunk 0, position 7 of 64), head 3, column 17". Falls back to the index alone when the
// case id does not parse, the tensor is not known or the index does not fit it.
std::string locate(const Problem& problem, std::string_view tensor, std::span<const std::int64_t> index);
std::string locate(std::string_view case_id, std::string_view tensor, std::span<const std::int64_t> index);

}  // namespace deltagauge::reports
