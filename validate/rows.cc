#include "validate/rows.h"

#include <algorithm>

#include "core/error.h"

namespace deltagauge::validate {
namespace {

void expect(std::string_view tensor, const char* what, std::int64_t want, const Shape& shape, std::size_t dim) {
  if (shape[dim] != want)
    fail(tensor, ": expected ", want, " ", what, " in dimension ", dim, ", got shape ", to_string(shape));
}

Rows token_rows(const Problem& p, std::string_view tensor, const Shape& shape) {
  expect(tensor, "token rows", p.rows(), shape, 0);
  const std::int64_t heads = shape.size() > 2 ? shape[1] : 1;
  Rows rows{shape.back(), shape[0] * heads, {}};
  const auto offsets = p.offsets();
  for (std::int64_t n = 0; n < p.sequences(); ++n)
    for (std::int64_t h = 0; h < heads && p.lengths[static_cast<std::size_t>(n)] > 0; ++h) {
      const std::int64_t first = offsets[static_cast<std::size_t>(n)];
      rows.series.push_back({first * heads + h, p.lengths[static_cast<std::size_t>(n)], heads, n, h, first});
    }
  return rows;
}

// tensors [blocks, HV, rows, width] where a block is a sequence or a chunk
Rows block_rows(const Problem& p, std::string_view tensor, const Shape& shape, bool per_chunk) {
  const std::int64_t heads = shape[1], height = shape[2];
  Rows rows{shape[3], shape[0] * heads * height, {}};
  const bool square = tensor != "S" && per_chunk;  // rows of the chunk: only those of its tokens count
  const std::int64_t chunk = square ? height : p.chunk;
  const auto offsets = p.offsets();
  std::int64_t block = 0;
  for (std::int64_t n = 0; n < p.sequences(); ++n) {
    const std::int64_t length = p.lengths[static_cast<std::size_t>(n)];
    const std::int64_t blocks = per_chunk ? (length + chunk - 1) / chunk : 1;
    for (std::int64_t c = 0; c < blocks; ++c, ++block)
      for (std::int64_t h = 0; h < heads; ++h)
        rows.series.push_back({(block * heads + h) * height, square ? std::min(chunk, length - c * chunk) : height, 1, n, h,
                               offsets[static_cast<std::size_t>(n)] + c * (per_chunk ? chunk : 0), block});
  }
  expect(tensor, per_chunk ? "chunks" : "sequences", block, shape, 0);
  return rows;
}

}  // namespace

Rows rows_of(const Problem& problem, std::string_view tensor, const Shape& shape) {
  const bool state = tensor == "final_state" || tensor == "S";
  const bool block = state || tensor == "Ainv" || tensor == "Akk";
  if (block ? shape.size() != 4 : shape.size() < 2)
    fail(tensor, ": expected ", block ? "4" : "2 or 3", " dimensions, got shape ", to_string(shape));
  return block ? block_rows(problem, tensor, shape, tensor != "final_state") : token_rows(problem, tensor, shape);
}

}  // namespace deltagauge::validate
