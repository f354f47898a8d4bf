// Metrics of one tensor: got, as stored, against want, exact in f64 (docs/numerics.md). Sums run over judged rows only.
//   row_ratio     = max_t ||e_t|| / B_t              element_ratio = max_tj |e_tj| sqrt(D_t) / B_t     e = got - want
//   rel_l2        = ||e|| / ||want||                 worst_row     = max_t ||e_t|| / max(||want_t||, median_s ||want_s||)
//   bias          = mean(e) / rms(e)                 ulp           = steps from want, rounded, in the stored dtype
// A ratio of 0 over 0 is 0, of anything else over 0 infinite. NaN and infinities are compared first, as sets: an element
// where one side is NaN or infinite and the other is not the same counts in non_finite and in nothing else. A right value
// beyond the format's range equals the infinity it rounds to, and within its row's budget of that edge both are right.
#pragma once
#include <string>
#include <vector>

#include "core/tensor.h"
#include "reports/report.h"
#include "validate/rows.h"

namespace deltagauge::validate {

struct Budget {
  std::vector<double> row;     // B_t by row index; unjudged rows 0
  std::vector<double> spread;  // D_t: over how many elements the row's error spreads, in [1, width]
  std::string from;            // in words
};

// want: f64, same shape as got; throws Error otherwise. rows and budget belong to that shape.
reports::TensorMetrics measure(const Tensor& got, const Tensor& want, const Rows& rows, const Budget& budget);

// Where an element of a tensor is, in words: its place in the tensor counted from 0 in row-major order.
std::string place(const Problem& problem, std::string_view tensor, const Shape& shape, std::int64_t element);

// Where two tensors of one type and shape differ in a bit, on judged rows: "3 of 128 elements differ, first at [0, 1]: got
// .. want ..", with the place in words where the tensor is known. Empty when none does.
std::string bit_mismatch(const Problem& problem, std::string_view tensor, const Tensor& got, const Tensor& want,
                         const Rows& rows);

}  // namespace deltagauge::validate
