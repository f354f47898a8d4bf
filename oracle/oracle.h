// The oracle: what the answer is, token by token, in f64, double-double or more. Never tiled, never tuned; shares nothing
// with reference/ or kernels/ but core/. Inputs are taken as they are stored (already rounded to their dtypes); scale and
// lower_bound as the f32 that a kernel gets.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge::oracle {

// automatic: f64, certified by dd; rows that disagree by more than 2^-40 of their scale re-run the case in dd.
enum class Precision { automatic, f64, dd, quad, oct };
std::string_view name(Precision precision);        // auto f64 dd quad oct
Precision parse_precision(std::string_view text);  // throws Error

struct Options {
  Precision precision = Precision::automatic;
  std::int64_t value_columns = 0;  // compute only this many evenly spaced value columns (rows of S); 0: all. Others are NaN
  bool taps = false;               // gdn: also g_cum Akk Ainv w u v_new S (chunk = problem.chunk), exact, as below
};

struct Answer {
  Tensors outputs;  // f64, shapes of OpInfo::outputs; rows past the active end are NaN
  Tensors taps;     // f64. Akk, Ainv [NC, HV, C, C] (Akk strictly lower, without the identity; past a sequence's end
                    // rows of Akk are 0, of Ainv the identity's), g_cum [T, HV], w [T, HV, K], u and v_new
                    // [T, HV, V], S [NC, HV, V, K] before each chunk. v_new and S come from the recurrence in the
                    // precision used (automatic: dd), the others from the chunk form in dd.
  Precision used = Precision::f64;
  double disagreement = 0;  // largest |f64 - dd| over its row's scale, when certified
};

// Throws Error when the op is unknown or an input is missing or of the wrong shape.
Answer answer(const Problem& problem, const Tensors& inputs, const Options& options = {});

// An independent derivation of the same forward answer for gdn: chunk form in double-double with an exact triangular
// solve. Tests hold it against answer().
Answer answer_chunkwise(const Problem& problem, const Tensors& inputs, std::int64_t chunk);

}  // namespace deltagauge::oracle
