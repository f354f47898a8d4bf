// Certification: is the f64 answer good enough to judge by? It is held against the same recurrence in double-double.
//   row: the last dimension of a tensor; a tensor of one dimension per token and head is one row a token.
//   scale of a row: max(its norm, the median norm of the tensor's rows), so that a row of tiny values among large ones is
//   judged by what a kernel could be expected to resolve.
//   disagreement: the largest |f64 - dd| / scale over all elements. Both non-finite agrees; one alone is infinite.
#pragma once
#include "oracle/oracle.h"

namespace deltagauge::oracle {

inline constexpr double kCertain = 0x1p-40;  // an f64 answer with no more disagreement than this stands

double disagreement(const Tensors& f64, const Tensors& dd);  // rows that neither answers (all NaN) do not count

}  // namespace deltagauge::oracle
