// Packed sequences: which rows belong to which, read from device memory.
#pragma once
#include <cstdint>

namespace deltagauge::kernels {

// The rows [begin, end) of sequence n, from cu_seqlens, or T / N rows each when it is null. Offsets that do not fit in
// [0, T] or that decrease are cut, so that bad offsets give wrong answers but no access outside the tensors.
struct Rows {
  std::int64_t begin, end;
};
__device__ inline Rows sequence_rows(const std::int32_t* cu_seqlens, std::int64_t n, std::int64_t N, std::int64_t T) {
  if (cu_seqlens == nullptr) return {n * (T / N), (n + 1) * (T / N)};
  std::int64_t begin = cu_seqlens[n], end = cu_seqlens[n + 1];
  begin = begin < 0 ? 0 : begin > T ? T : begin;
  end = end < begin ? begin : end > T ? T : end;
  return {begin, end};
}
// The number of active rows: cu_seqlens[N], or all T.
__device__ inline std::int64_t active_rows(const std::int32_t* cu_seqlens, std::int64_t N, std::int64_t T) {
  if (cu_seqlens == nullptr) return T;
  const std::int64_t end = cu_seqlens[N];
  return end < 0 ? 0 : end > T ? T : end;
}

}  // namespace deltagauge::kernels
