#include "reports/locate.h"

#include <array>
#include <optional>

#include "core/error.h"
#include "core/problem.h"

namespace deltagauge::reports {
namespace {

// What each index of a tensor counts: t packed token row, n sequence, c chunk (counted per sequence, all sequences in a
// row), anything else is the word itself.
struct Dims {
  std::string_view tensor;
  std::array<std::string_view, 4> words;
};
constexpr Dims kDims[] = {
    {"o", {"t", "head", "value column"}},
    {"y", {"t", "head", "key channel"}},
    {"g", {"t", "head", "key channel"}},
    {"g_cum", {"t", "head"}},
    {"w", {"t", "head", "key channel"}},
    {"u", {"t", "head", "value column"}},
    {"v_new", {"t", "head", "value column"}},
    {"final_state", {"n", "head", "value column", "key channel"}},
    {"S", {"c", "head", "value column", "key channel"}},
    {"Ainv", {"c", "head", "row", "column"}},
    {"Akk", {"c", "head", "row", "column"}},
};

std::string in_chunk(std::int64_t token, std::int64_t chunk) {
  return "token " + std::to_string(token) + " (chunk " + std::to_string(token / chunk) + ", position " +
         std::to_string(token % chunk) + " of " + std::to_string(chunk) + ")";
}

std::string token_words(const Problem& p, std::int64_t row) {
  const auto offsets = p.offsets();
  for (std::size_t n = 0; n + 1 < offsets.size(); ++n)
    if (row >= offsets[n] && row < offsets[n + 1])
      return "sequence " + std::to_string(n) + ", " + in_chunk(row - offsets[n], p.chunk);
  return "row " + std::to_string(row) + " past the active end " + std::to_string(offsets.back());
}

std::string chunk_words(const Problem& p, std::int64_t chunk) {
  std::int64_t first = 0;
  for (std::size_t n = 0; n < p.lengths.size(); ++n) {
    const std::int64_t count = (p.lengths[n] + p.chunk - 1) / p.chunk;
    if (chunk < first + count) return "sequence " + std::to_string(n) + ", chunk " + std::to_string(chunk - first);
    first += count;
  }
  return "chunk " + std::to_string(chunk);
}

std::string bracketed(std::span<const std::int64_t> index) {
  std::string text = "[";
  for (const std::int64_t i : index) text += (text.size() > 1 ? ", " : "") + std::to_string(i);
  return text + "]";
}

std::optional<Problem> problem_of(std::string_view case_id) {
  try {
    return parse_id(case_id).problem;
  } catch (const Error&) {
    return std::nullopt;
  }
}

}  // namespace

std::string locate(std::string_view case_id, std::string_view tensor, std::span<const std::int64_t> index) {
  const auto problem = problem_of(case_id);
  return problem ? locate(*problem, tensor, index) : bracketed(index);
}

std::string locate(const Problem& problem, std::string_view tensor, std::span<const std::int64_t> index) {
  std::string text = bracketed(index);
  if (problem.chunk < 1) return text;
  for (const Dims& dims : kDims) {
    if (dims.tensor != tensor || index.size() > dims.words.size()) continue;
    for (std::size_t i = 0; i < index.size(); ++i) {
      const std::string_view word = dims.words[i];
      if (word.empty()) return text;
      text += i ? ", " : ": ";
      if (word == "t")
        text += token_words(problem, index[i]);
      else if (word == "c")
        text += chunk_words(problem, index[i]);
      else
        text += (word == "n" ? problem.slots ? "slot" : "sequence" : std::string(word)) + " " + std::to_string(index[i]);
    }
  }
  return text;
}

}  // namespace deltagauge::reports
