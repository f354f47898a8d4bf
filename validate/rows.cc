#include "validate/rows.h"

#include <algorithm>

#include "core/error.h"

namespace deltagauge::validate {
namespace {

void expect(std::string_view tensor, const char* what, std::int64_t want, const Shape& shape, std::size_t dim) {
  if (shape[dim] != want)
    fail(tensor, ": expected ", want, " ", what, " in dimension ", dim, ", got shape ", to_string(shape));
}

// Of each sequence, whether it has a slot; all do where there is no pool.
std::vector<bool> have_slots(const Problem& p) {
  std::vector<bool> have(p.lengths.size(), true);
  const auto slots = p.state_indices();
  for (std::size_t n = 0; n < slots.size(); ++n) have[n] = slots[n] > 0;
  return have;
}

// final_state of a pool [P, HV, V, K]: the slots that sequences own.
Rows slot_rows(const Problem& p, std::string_view tensor, const Shape& shape) {
  expect(tensor, "slots", p.slots, shape, 0);
  Rows rows{shape[3], shape[0] * shape[1] * shape[2], {}};
  const auto slots = p.state_indices();
  const auto offsets = p.offsets();
  for (std::size_t n = 0; n < slots.size(); ++n)
    for (std::int64_t h = 0; h < shape[1] && slots[n] > 0; ++h)
      rows.series.push_back(
          {(slots[n] * shape[1] + h) * shape[2], shape[2], 1, static_cast<std::int64_t>(n), h, offsets[n], slots[n]});
  return rows;
}

Rows token_rows(const Problem& p, std::string_view tensor, const Shape& shape) {
  expect(tensor, "token rows", p.rows(), shape, 0);
  const std::int64_t heads = shape.size() > 2 ? shape[1] : 1;
  Rows rows{shape.back(), shape[0] * heads, {}};
  const auto offsets = p.offsets();
  const auto have = have_slots(p);
  for (std::int64_t n = 0; n < p.sequences(); ++n)
    for (std::int64_t h = 0;
         (tensor == "o" || have[static_cast<std::size_t>(n)]) && h < heads && p.lengths[static_cast<std::size_t>(n)] > 0;
         ++h) {
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
  const auto have = have_slots(p);
  std::int64_t block = 0;
  for (std::int64_t n = 0; n < p.sequences(); ++n) {
    const std::int64_t length = p.lengths[static_cast<std::size_t>(n)];
    const std::int64_t blocks = per_chunk ? (length + chunk - 1) / chunk : 1;
    for (std::int64_t c = 0; c < blocks; ++c, ++block)
      for (std::int64_t h = 0; h < heads && have[static_cast<std::size_t>(n)]; ++h)
        rows.series.push_back({(block * heads + h) * height, square ? std::min(chunk, length - c * chunk) : height, 1, n, h,
                               offsets[static_cast<std::size_t>(n)] + c * (per_chunk ? chunk : 0), block});
  }
  expect(tensor, per_chunk ? "chunks" : "sequences", block, shape, 0);
  return rows;
}

}  // namespace

std::int64_t elements_of(const Rows& rows) {
  std::int64_t count = 0;
  for (const Series& s : rows.series) count += s.count * rows.width;
  return count;
}

Rows rows_of(const Problem& problem, std::string_view tensor, const Shape& shape) {
  const bool state = tensor == "final_state" || tensor == "S";
  const bool block = state || tensor == "Ainv" || tensor == "Akk";
  if (block ? shape.size() != 4 : shape.size() < 2)
    fail(tensor, ": expected ", block ? "4" : "2 or 3", " dimensions, got shape ", to_string(shape));
  if (tensor == "final_state" && problem.slots) return slot_rows(problem, tensor, shape);
  return block ? block_rows(problem, tensor, shape, tensor != "final_state") : token_rows(problem, tensor, shape);
}

}  // namespace deltagauge::validate
