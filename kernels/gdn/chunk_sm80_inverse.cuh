// gdn.chunk_sm80: A and X = (I + A)^-1 of one chunk and value head, by a team of 4 warps; part of the first kernel.
// By 16 x 16 blocks: X_II by substitution in f32, then the rest (solve_column) by products in 3 x tf32 (22 bits). Warp J
// owns block column J and works on X^T, so that each product's result is, register for register, the next one's operand a.
#pragma once
#include "kernels/device/ptx/barrier.cuh"
#include "kernels/device/ptx/ex2.cuh"
#include "kernels/device/ptx/mma_m16n8k16.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/device/tile_tf32.cuh"
#include "kernels/gdn/chunk_sm80.cuh"

namespace deltagauge::kernels::gdn::chunk_sm80 {

inline constexpr int kTeamThreads = 32 * kBlocks;
inline constexpr unsigned kAll = 0xffffffffu;

// b_i in log2 units as hi + lo, so that b_i - b_j keeps its bits after a large g.
struct Gates {
  float hi[kC], lo[kC], beta[kC];
};

struct Factors {
  float A[kC][kC + 4];           // + 4: rows of a fragment fall into different banks
  float X[kBlocks][16][16 + 4];  // inverses of the diagonal blocks of I + A
};

struct Lane {
  int group = threadIdx.x % 32 / 4, t = threadIdx.x % 4;
};

// A block row of a product: rows 16 w .., block columns 0 .. w, as accumulators of two n-blocks of 8.
using BlockRow = float[kBlocks][2][4];

// exp(b_i - b_j) for an accumulator's elements of rows i = row, row + 8, columns j = column, column + 1.
struct Decays {
  float hi[2], lo[2];
  template <class Gates>
  __device__ Decays(const Gates& gates, int row)
      : hi{gates.hi[row], gates.hi[row + 8]}, lo{gates.lo[row], gates.lo[row + 8]} {}
  template <class Gates>
  __device__ void of(const Gates& gates, int column, float (&decay)[4]) const {
    const float2 h = *reinterpret_cast<const float2*>(&gates.hi[column]),
                 l = *reinterpret_cast<const float2*>(&gates.lo[column]);
#pragma unroll
    for (int e = 0; e < 4; ++e) decay[e] = ptx::ex2((hi[e / 2] - (e % 2 ? h.y : h.x)) + (lo[e / 2] - (e % 2 ? l.y : l.x)));
  }
};

// Rows 16 w .. of x k^T on and below the diagonal blocks, for tiles x and k.
template <class Io, int kD>
__device__ void multiply_rows(std::uint32_t x, std::uint32_t k, int w, BlockRow& d) {
  const int lane = threadIdx.x % 32;
  const std::uint32_t rows = x + Tile<kD>::row_major(lane), columns = k + Tile<kD>::column_major(lane);
#pragma unroll
  for (int j = 0; j < kBlocks; ++j)
#pragma unroll
    for (int e = 0; e < 8; ++e) d[j][e / 4][e % 4] = 0;
#pragma unroll
  for (int c = 0; c < kD; c += 16) {
    std::uint32_t a[4];
    ptx::ldmatrix_x4(a, Tile<kD>::at(rows, 16 * w, c));
#pragma unroll
    for (int j = 0; j < kBlocks; ++j) {
      if (j > w) break;
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, Tile<kD>::at(columns, 16 * j, c));
      ptx::mma_m16n8k16<Io>(d[j][0], a, b[0], b[1]);
      ptx::mma_m16n8k16<Io>(d[j][1], a, b[2], b[3]);
    }
  }
}

__device__ inline void store_A(const BlockRow& kk, const Gates& gates, int w, Factors& factors) {
  const Lane l;
  const int row = 16 * w + l.group;
  const Decays decays(gates, row);
  const float beta[2] = {gates.beta[row], gates.beta[row + 8]};
#pragma unroll
  for (int j = 0; j < 2 * kBlocks; ++j) {  // blocks of 8 columns
    if (j / 2 > w) break;
    const int column = 8 * j + 2 * l.t;
    float decay[4], x[4];
    decays.of(gates, column, decay);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const float a = beta[e / 2] * (decay[e] * kk[j / 2][j % 2][e]);
      x[e] = column + e % 2 < row + 8 * (e / 2) ? a : 0.0f;
    }
    *reinterpret_cast<float2*>(&factors.A[row][column]) = make_float2(x[0], x[1]);
    *reinterpret_cast<float2*>(&factors.A[row + 8][column]) = make_float2(x[2], x[3]);
  }
}

// One warp: x = column threadIdx.x % 16 of the inverse of I + A for a strictly lower triangular A [16, 16], its rows kStride
// floats apart, which this warp has written. Four rows at a time, whose sums over what is solved do not wait for each other.
template <int kStride>
__device__ void invert_block(const float* A, float (&x)[16]) {
  const int column = threadIdx.x % 16;
#pragma unroll
  for (int first = 0; first < 16; first += 4) {
    float4 own[4];  // A's columns first .. of the four rows
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      own[i] = *reinterpret_cast<const float4*>(A + (first + i) * kStride + first);
      x[first + i] = first + i == column ? 1.0f : 0.0f;
    }
#pragma unroll
    for (int j = 0; j < first; j += 4)
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float4 a = *reinterpret_cast<const float4*>(A + (first + i) * kStride + j);
        float& sum = x[first + i];
        sum = fmaf(-a.w, x[j + 3], fmaf(-a.z, x[j + 2], fmaf(-a.y, x[j + 1], fmaf(-a.x, x[j], sum))));
      }
#pragma unroll
    for (int j = 0; j < 3; ++j)
#pragma unroll
      for (int i = j + 1; i < 4; ++i) x[first + i] = fmaf(-(&own[i].x)[j], x[first + j], x[first + i]);
  }
}
// Of the diagonal block w of A.
__device__ inline void invert_diagonal(Factors& factors, int w) {
  float x[16];
  invert_block<kC + 4>(&factors.A[16 * w][16 * w], x);
  if (threadIdx.x % 32 < 16)
#pragma unroll
    for (int i = 0; i < 16; ++i) factors.X[w][i][threadIdx.x % 16] = x[i];
}

// Block (i, j) of a triangle: rows[n] holds row 8 n + group, columns 2 t, 2 t + 1, 8 + 2 t, 9 + 2 t. f32: as it is; else
// rounded to tf32.
__device__ inline void store_block(Triangle& triangle, int i, int j, float4 (&rows)[2], bool f32) {
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    float4& x = rows[n];
    if (!f32) x = make_float4(round_tf32(x.x), round_tf32(x.y), round_tf32(x.z), round_tf32(x.w));
    triangle.at[lower(i, j)][n][threadIdx.x % 32] = x;
  }
}

// X^T of one block as two accumulators: rows are columns of X.
using Transposed = float[2][4];

// d[m] += a[m] B[m]^T for blocks B in shared memory, rows stride[m] floats apart. The sums stand side by side, since each
// waits for its own last product.
template <int kCount>
__device__ void multiply_add(Transposed (&d)[kCount], const Transposed* const (&a)[kCount], const float* const (&B)[kCount],
                             const int (&stride)[kCount]) {
  const Lane l;
#pragma unroll
  for (int k = 0; k < 2; ++k) {
    SplitTf32 x[kCount][4], y[kCount][2][2];
#pragma unroll
    for (int m = 0; m < kCount; ++m) {
      constexpr int kElement[4] = {0, 2, 1, 3};  // as in OperandTf32
#pragma unroll
      for (int r = 0; r < 4; ++r) x[m][r] = SplitTf32((*a[m])[k][kElement[r]]);
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float2 b = *reinterpret_cast<const float2*>(B[m] + (8 * n + l.group) * stride[m] + 8 * k + 2 * l.t);
        y[m][n][0] = SplitTf32(b.x);
        y[m][n][1] = SplitTf32(b.y);
      }
    }
#pragma unroll
    for (int part = 0; part < 3; ++part)  // lo hi, hi lo, hi hi
#pragma unroll
      for (int m = 0; m < kCount; ++m) {
        std::uint32_t operand[4];
#pragma unroll
        for (int r = 0; r < 4; ++r) operand[r] = part == 0 ? x[m][r].lo : x[m][r].hi;
#pragma unroll
        for (int n = 0; n < 2; ++n)
          ptx::mma_m16n8k8_tf32(d[m][n], operand,
                                {part == 1 ? y[m][n][0].lo : y[m][n][0].hi, part == 1 ? y[m][n][1].lo : y[m][n][1].hi});
      }
  }
}

// Where debugging wants X of a chunk and value head, or null.
__device__ inline float* tap_of(const Params& p, std::int64_t n, std::int64_t chunk, std::int64_t h) {
  const Args& a = p.args;
  if (a.tap_Ainv == nullptr) return nullptr;
  return a.tap_Ainv + (chunks_before(p, n) + chunk) * a.HV * kC * kC + h * kC * kC;
}

__device__ inline void negate(Transposed& x) {
#pragma unroll
  for (int e = 0; e < 8; ++e) x[e / 4][e % 4] = -x[e / 4][e % 4];
}

// A team: X from A and the inverses of its diagonal blocks; warp w writes block column w. Matrix: what store_block() writes
// to. First the two halves of 32 rows, X_10 = -X_11 A_10 X_00 and X_32, then with T = A_(2,3)(0,1) X_(0,1)j
//   X_2j = -X_22 T_2      X_3j = -(X_32 T_2 + X_33 T_3)
// X_32 takes the place of A_32, which nothing else reads.
template <class Matrix>
__device__ void solve_column(Factors& factors, int w, int barrier, bool split, Matrix& X, float* tap) {
  constexpr int kA = kC + 4, kX = 16 + 4;  // row strides
  const Lane l;
  Transposed x[kBlocks];  // X_{i w}^T
#pragma unroll
  for (int i = 0; i < kBlocks; ++i)
#pragma unroll
    for (int e = 0; e < 8; ++e) x[i][e / 4][e % 4] = 0;
  const auto A = [&](int i, int j) { return &factors.A[16 * i][16 * j]; };
  const auto X_of = [&](int i) { return &factors.X[i][0][0]; };

#pragma unroll
  for (int i = 0; i < kBlocks; ++i)
    if (i == w) {
#pragma unroll
      for (int k = 0; k < 2; ++k)
#pragma unroll
        for (int e = 0; e < 4; ++e) x[i][k][e] = factors.X[i][8 * k + 2 * l.t + e % 2][l.group + 8 * (e / 2)];
      if (i % 2 == 0) {
        Transposed sum[1] = {}, y[1] = {};
        multiply_add<1>(sum, {&x[i]}, {A(i + 1, i)}, {kA});
        multiply_add<1>(y, {&sum[0]}, {X_of(i + 1)}, {kX});
        negate(y[0]);
#pragma unroll
        for (int e = 0; e < 8; ++e) x[i + 1][e / 4][e % 4] = y[0][e / 4][e % 4];
      }
      if (i == 2) {
        __syncwarp();  // A_32 has been read
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
          for (int e = 0; e < 4; ++e) factors.A[48 + 8 * k + 2 * l.t + e % 2][32 + l.group + 8 * (e / 2)] = x[3][k][e];
      }
    }
  ptx::barrier_sync<kTeamThreads>(barrier);  // X_32 is there
  if (w < 2) {
    Transposed sum[2] = {}, y[2] = {};
    if (w == 0) multiply_add<2>(sum, {&x[0], &x[0]}, {A(2, 0), A(3, 0)}, {kA, kA});
    multiply_add<2>(sum, {&x[1], &x[1]}, {A(2, 1), A(3, 1)}, {kA, kA});
    multiply_add<2>(y, {&sum[0], &sum[0]}, {X_of(2), A(3, 2)}, {kX, kA});
    Transposed last[1] = {
        {{y[1][0][0], y[1][0][1], y[1][0][2], y[1][0][3]}, {y[1][1][0], y[1][1][1], y[1][1][2], y[1][1][3]}}};
    multiply_add<1>(last, {&sum[1]}, {X_of(3)}, {kX});
    negate(y[0]);
    negate(last[0]);
#pragma unroll
    for (int e = 0; e < 8; ++e) {
      x[2][e / 4][e % 4] = y[0][e / 4][e % 4];
      x[3][e / 4][e % 4] = last[0][e / 4][e % 4];
    }
  }
#pragma unroll
  for (int i = 0; i < kBlocks; ++i) {
    float4 rows[2] = {};
    if (i >= w) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        rows[n] = make_float4(x[i][n][0], x[i][n][1], x[i][n][2], x[i][n][3]);
        transpose(rows[n].x, rows[n].y);
        transpose(rows[n].z, rows[n].w);
      }
      store_block(X, i, w, rows, split);
    }
    if (tap != nullptr) {
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        float* to = tap + (16 * i + 8 * n + l.group) * kC + 16 * w + 2 * l.t;
        *reinterpret_cast<float2*>(to) = make_float2(rows[n].x, rows[n].y);
        *reinterpret_cast<float2*>(to + 8) = make_float2(rows[n].z, rows[n].w);
      }
    }
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm80
