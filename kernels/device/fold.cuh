// S <- S A + B for states [V, K] in f32, kRows rows of one head at a time: rows never meet, and a thread sums whole columns
// of them. Each element is summed from B on by ascending column of S, each step a fused multiply-add: the bits of
// reference/cp.h:merge_state.
#pragma once
#include <cstdint>

namespace deltagauge::kernels::fold {

template <int kRows>
struct alignas(16) Column {
  float at[kRows];
};

// Rows [first, first + count) of a state [V, K].
template <int kRows>
struct Place {
  int first, count, K;
  __device__ Place(std::int64_t block, std::int64_t rows, std::int64_t columns)
      : first(static_cast<int>(block) * kRows),
        count(static_cast<int>(rows) - first < kRows ? static_cast<int>(rows) - first : kRows),
        K(static_cast<int>(columns)) {}
  __device__ Column<kRows> load(const float* state, int c) const {  // null: zero
    Column<kRows> column = {};
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (state != nullptr && r < count) column.at[r] = state[(first + r) * K + c];
    return column;
  }
  __device__ void store(const Column<kRows>& column, float* state, int c) const {
#pragma unroll
    for (int r = 0; r < kRows; ++r)
      if (r < count) state[(first + r) * K + c] = column.at[r];
  }
};

// Column c of S A + B, for B's own.
template <int kRows>
__device__ Column<kRows> merged(int K, const Column<kRows>* S, const Column<kRows>& bias, const float* transition, int c) {
  Column<kRows> sum = bias;
#pragma unroll 8
  for (int j = 0; j < K; ++j) {
    const float a = transition[j * K + c];
    const Column<kRows> s = S[j];
#pragma unroll
    for (int r = 0; r < kRows; ++r) sum.at[r] = fmaf(s.at[r], a, sum.at[r]);
  }
  return sum;
}

}  // namespace deltagauge::kernels::fold
