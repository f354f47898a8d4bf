// The chunk form of the gated delta rule in double-double, docs/math.md: the taps that belong to it, and a second
// derivation of the answer that shares no code with recurrence.h. Per chunk of C tokens, d(i, j) the decay from after token
// j up to token i, d(i) from the chunk's entry up to token i:
//   A_ij = beta_i d(i, j) k_i . k_j (j < i);  Ainv = (I + A)^-1;  w = Ainv (beta d(i) k);  u = Ainv (beta v)
//   v_new = u - w S^T;  o_i = scale (d(i) q_i S^T + sum_{j <= i} d(i, j) (q_i . k_j) v_new_j)
//   S' = d(C) S + sum_j d(C, j) v_new_j k_j^T,  C the last token the chunk has
// d is exp of a sum that starts anew at every j, never of a difference of sums, so g = -inf gives 0 and not inf - inf. The
// triangular system is solved by substitution, row after row.
#pragma once
#include <span>
#include <vector>

#include "oracle/call.h"
#include "oracle/matrix.h"

namespace deltagauge::oracle {

// g_cum Akk Ainv w u, and v_new and S still unanswered. Akk is A, strictly lower; past a sequence's end Akk rows are 0 and
// Ainv rows the identity's.
Tensors chunk_taps(const Call& call);

// One sequence and value head: o [tokens, V] and the final S^T [K, V].
struct ChunkwiseHead {
  Matrix o, S;
};
ChunkwiseHead chunkwise_head(const Call& call, const Sequence& sequence, std::int64_t h, std::int64_t chunk);

}  // namespace deltagauge::oracle
