// What every op of the oracle is handed, and how it reads stored tensors.
#pragma once
#include <cstdint>
#include <vector>

#include "oracle/oracle.h"

namespace deltagauge::oracle {

struct Call {
  const Problem& problem;
  const Tensors& inputs;  // present and of the right shapes: answer() has checked
  const Options& options;
};

// Where a sequence lies: packed rows [first, end); its first chunk of problem.chunk tokens is number chunk of all.
struct Sequence {
  std::int64_t n = 0, first = 0, end = 0, chunk = 0;
  std::int64_t slot = 1;  // of the state pool, where there is one; not positive: no slot
  bool has_state = true;  // the slot is read
};
std::vector<Sequence> sequences(const Problem& problem);
std::int64_t chunk_count(const Problem& problem);  // NC: sum over sequences of ceil(length / chunk)

// Multiply-adds below which waiting for a second thread costs more than it saves.
inline constexpr std::int64_t kWorthThreads = 1 << 16;

// n elements of a stored tensor, stride apart from a storage offset, as double: exact for every format.
void read_row(const Tensor& tensor, std::int64_t offset, std::int64_t stride, std::int64_t n, double* out);

// The value columns an answer is wanted in: count of V, evenly spaced from 0; all when count is 0 or at least V.
std::vector<std::int64_t> sampled_columns(std::int64_t V, std::int64_t count);

// An f64 tensor of quiet NaN: what stands in outputs wherever nothing was computed.
Tensor unanswered(Shape shape);
Tensors unanswered_outputs(const Problem& problem);  // as OpInfo::outputs names them

}  // namespace deltagauge::oracle
