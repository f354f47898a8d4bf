// gdn.chunk_sm90_fused: from k, q and the gates of a chunk of 32 tokens to X = (I + A)^-1 and scale P (equations:
// chunk_sm90.cuh), a warp each, by blocks of 16 on mma.sync.
#pragma once
#include "kernels/gdn/chunk_sm90_warpgroup.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kFusedD = 128;  // K and V
inline constexpr int kShort = 32;    // tokens of a chunk
inline constexpr int kPlaces = 6;    // of chunks in shared memory
using ShortWork = WorkOf<kShort>;
using ShortVectors = VectorsOf<kShort>;

// Tiles as Factors90 has them.
struct ShortFactors {
  float X[kShort * kShort], P[kShort * kShort];
};

// A chunk in shared memory, rows of 128 bytes in the 128-byte swizzle.
template <class Io>
struct alignas(1024) FusedPlace {
  Io keys[kFusedD / 64][2 * kShort * 64];  // tiles of 64 channels: tokens of k, then those of q
  ShortFactors factors;
  Io v[kFusedD / 64][kShort * 64];  // tiles of 64 V columns, then o

  // Rows first, first + step .. of k and q, of tokens below valid, to unit length, by a warp.
  __device__ void normalise(int first, int step, int valid) {
    for (int row = first; row < 2 * kShort; row += step)
      if (row % kShort < valid)
        normalise_row<Io, kFusedD>(
            [&](int block) { return reinterpret_cast<char*>(keys[block / 8]) + Tile<64>::offset(row, block % 8); },
            static_cast<Io*>(nullptr));
  }
};

// As Gates, and what exp(b_i - b_j) is made of for i in the second block of 16 tokens and j in the first, as BlockDecays.
struct ShortGates {
  float hi[kShort], lo[kShort], beta[kShort];
  float row[16], column[16];  // exp(b_i - b_16), exp(b_16 - b_j)
};

// One warp, a token a lane.
__device__ inline void store_short_gates(const GateSums<1>& of, float scale, ShortGates& gates, ShortVectors& vectors) {
  const int lane = threadIdx.x % 32;
  const float hi = of.hi[0], lo = of.lo[0];
  gates.hi[lane] = hi;
  gates.lo[lane] = lo;
  gates.beta[lane] = of.beta[0];
  const float from = hi - __shfl_sync(kAll, hi, 16), rest = lo - __shfl_sync(kAll, lo, 16);
  (lane < 16 ? gates.column[lane] : gates.row[lane - 16]) = ptx::ex2(lane < 16 ? -from - rest : from + rest);
  vectors.beta[lane] = kTf32Up * of.beta[0];
  vectors.decay_in[lane] = of.in[0];
  vectors.decay_read[lane] = scale * of.in[0];
  vectors.decay_out[lane] = of.out[0];
}

// Blocks (0, 0), (1, 0) and (1, 1) of 16 tokens of x k^T, as accumulators of two n-blocks of 8; x is k or, kQ, q.
using ShortBlockRows = float[3][2][4];
template <class Io, bool kQ>
__device__ void multiply_short(const FusedPlace<Io>& place, ShortBlockRows& d) {
#pragma unroll
  for (int e = 0; e < 24; ++e) d[e / 8][e / 4 % 2][e % 4] = 0;
  const std::uint32_t lane_at = Tile<64>::row_major(threadIdx.x % 32);
#pragma unroll
  for (int c = 0; c < kFusedD; c += 16) {
    const std::uint32_t tile = shared_address(place.keys[c / 64]) + lane_at;
    std::uint32_t k[2][4], x[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      ptx::ldmatrix_x4(k[i], Tile<64>::at(tile, 16 * i, c % 64));
      if constexpr (kQ) ptx::ldmatrix_x4(x[i], Tile<64>::at(tile, kShort + 16 * i, c % 64));
    }
#pragma unroll
    for (int block = 0; block < 3; ++block)
#pragma unroll
      for (int n = 0; n < 2; ++n) {  // of operand a's registers the first and third hold rows 0 .. 7, the others 8 .. 15
        const auto& b = k[block / 2];
        ptx::mma_m16n8k16<Io>(d[block][n], kQ ? x[(block + 1) / 2] : k[(block + 1) / 2], b[n], b[n + 2]);
      }
  }
}

// exp(b_i - b_j) x k^T, kP: on and below the diagonal, times scale; else below it, times beta_i. store(i, j, rows) takes
// block (i, j) as for store_tile.
template <bool kP, class Store>
__device__ void decay_short(const ShortBlockRows& products, const ShortGates& gates, float scale, Store store) {
  const Lane l;
#pragma unroll
  for (int block = 0; block < 3; ++block) {
    const int i = (block + 1) / 2, j = block / 2;
    float x[2][4], own[2], from[2] = {1, 1};  // [row block][element of the row]
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      own[r] = kP ? scale : gates.beta[16 * i + 8 * r + l.group];
      if (i != j) from[r] = own[r] * gates.row[8 * r + l.group];
    }
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int column = 8 * n + 2 * l.t;
      float decay[4];
      if (i == j) {
        Decays(gates, 16 * i + l.group).of(gates, 16 * i + column, decay);
      } else {
        const float2 m = *reinterpret_cast<const float2*>(&gates.column[column]);
#pragma unroll
        for (int e = 0; e < 4; ++e) decay[e] = from[e / 2] * (e % 2 ? m.y : m.x);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const int past = column + e % 2 - (l.group + 8 * (e / 2));  // columns past the diagonal
        const float value = decay[e] * products[block][n][e];
        x[e / 2][2 * n + e % 2] = i != j ? value : past < (kP ? 1 : 0) ? own[e / 2] * value : 0.0f;
      }
    }
    const float4 rows[2] = {make_float4(x[0][0], x[0][1], x[0][2], x[0][3]),
                            make_float4(x[1][0], x[1][1], x[1][2], x[1][3])};
    store(i, j, rows);
  }
}

template <class Io>
__device__ void make_short_P(FusedPlace<Io>& place, const ShortGates& gates, float scale) {
  ShortBlockRows qk;
  multiply_short<Io, true>(place, qk);
  decay_short<true>(qk, gates, scale,
                    [&](int i, int j, const float4(&rows)[2]) { store_tile(place.factors.P, i, j, rows); });
}

// Blocks of A in f32, then those on the diagonal as the inverses of I + A_II.
struct ShortBlocks {
  struct {
    Block at;
    float apart[16];  // lanes of both halves of a warp fall into different banks
  } diagonal[2];
  Block below;
};

// X_II by substitution, a half of the warp each, then X_10 = -X_11 A_10 X_00 by products in 3 x tf32 (22 bits), on X^T, so
// that a product's result is the next one's operand a.
template <class Io>
__device__ void make_short_X(FusedPlace<Io>& chunk, const ShortGates& gates, ShortBlocks& blocks) {
  const Lane l;
  float* X = chunk.factors.X;
  {
    ShortBlockRows kk;
    multiply_short<Io, false>(chunk, kk);
    decay_short<false>(kk, gates, 1.0f, [&](int i, int j, const float4(&rows)[2]) {
      store_block(i != j ? blocks.below : blocks.diagonal[i].at, rows);
    });
  }
  __syncwarp();  // A is there
  const int half = threadIdx.x % 32 / 16, column = threadIdx.x % 16;
  Block& own = blocks.diagonal[half].at;
  float x[16];
  invert_block<16 + 4>(own[0], x);
  __syncwarp();  // A_II has been read
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    own[i][column] = x[i];
    X[place(16 * half + i, 16 * half + column)] = round_tf32(x[i]);
  }
  __syncwarp();  // the inverses are there
  Transposed X00, product[1] = {}, X10[1] = {};
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int e = 0; e < 4; ++e) X00[k][e] = blocks.diagonal[0].at[8 * k + 2 * l.t + e % 2][l.group + 8 * (e / 2)];
  multiply_add<1>(product, {&X00}, {blocks.below[0]}, {16 + 4});
  multiply_add<1>(X10, {&product[0]}, {blocks.diagonal[1].at[0]}, {16 + 4});
  negate(X10[0]);
  float4 rows[2];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    rows[n] = make_float4(X10[0][n][0], X10[0][n][1], X10[0][n][2], X10[0][n][3]);
    transpose(rows[n].x, rows[n].y);
    transpose(rows[n].z, rows[n].w);
  }
  store_tile(X, 1, 0, rows);
}

// For debugging: X, by a warp.
__device__ inline void tap_inverse(const ShortFactors& factors, float* tap) {
  for (int at = threadIdx.x % 32; at < kShort * kShort; at += 32) tap[at] = factors.X[place(at / kShort, at % kShort)];
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
