// Rows: how a judged tensor splits into rows (its last dimension) and which rows are neighbours. A series is a run of rows
// of one sequence and head, in the order of time (o [T, HV, V], w, u, v_new, g, y) or along the next dimension
// (final_state [N, HV, V, K], S [NC, HV, V, K]: value rows; Ainv, Akk [NC, HV, C, C]: rows of the chunk). Rows in no
// series (past the active end, past the end of a chunk's sequence, slots that no sequence owns, intermediates of sequences
// without a slot) are never judged.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::validate {

struct Series {
  std::int64_t first = 0, count = 0, stride = 1;  // row indices first, first + stride, ...
  std::int64_t sequence = 0, head = 0;
  std::int64_t token = 0;   // first token of the series' sequence or chunk
  std::int64_t block = -1;  // the sequence or slot (final_state) or chunk (S, Ainv, Akk); -1: rows are tokens
};

struct Rows {
  std::int64_t width = 0;  // elements of a row
  std::int64_t total = 0;  // rows of the tensor, judged or not
  std::vector<Series> series;
};

std::int64_t elements_of(const Rows& rows);  // in any series

// Throws Error when the shape does not fit the problem (expected and got).
Rows rows_of(const Problem& problem, std::string_view tensor, const Shape& shape);

}  // namespace deltagauge::validate
