// gdn.chunk_sm90_fused: a chunk of 32 tokens in shared memory, and its gates.
#pragma once
#include "kernels/gdn/chunk_sm90_warpgroup.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kFusedD = 128;   // K and V
inline constexpr int kShort = kHalf;  // tokens of a chunk
inline constexpr int kPlaces = 6;     // of chunks in shared memory
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

  // A warp: inverse norms of rows first + lane, tokens of k, or of q from row 32 on.
  __device__ float norm(int first) {
    const int row = first + threadIdx.x % 32;
    return inverse_norm<Io, kFusedD / 8, 1>([&](int block) {
             return reinterpret_cast<uint4*>(reinterpret_cast<char*>(keys[block / 8]) + Tile<64>::offset(row, block % 8));
           })
        .r;
  }
};

// And what products are multiplied by for unit q and k: with lo_column in place of lo A and P are times 1 / |k_j|, as column
// is; 1 / |k_i| goes into beta, 1 / |q_i| into read, which is scale else.
struct ShortGates : HalfGates {
  float lo_column[kShort], read[kShort];
};

// One warp, a token a lane.
__device__ inline void store_short_gates(const GateSums<1>& of, float scale, ShortGates& gates, ShortVectors& vectors) {
  const int lane = threadIdx.x % 32;
  gates.hi[lane] = of.hi[0];
  gates.lo[lane] = gates.lo_column[lane] = of.lo[0];
  gates.read[lane] = scale;
  gates.beta[lane] = of.beta[0];
  (lane < 16 ? gates.column[lane] : gates.row[lane - 16]) = from_middle(of, 0, 16, lane < 16);
  store_vectors<true, true>(of, scale, nullptr, vectors);
}

// A warp: what the inverse norms of k go into, or of q, of the lane's token.
__device__ inline void to_unit_k(float r, ShortGates& gates, ShortVectors& vectors) {
  const int lane = threadIdx.x % 32;
  gates.beta[lane] *= r;
  gates.lo_column[lane] -= log2f(r);
  if (lane < 16) gates.column[lane] *= r;
  vectors.decay_in[lane] *= r;
  vectors.decay_out[lane] *= r;
}
__device__ inline void to_unit_q(float r, ShortGates& gates, ShortVectors& vectors) {
  const int lane = threadIdx.x % 32;
  gates.read[lane] *= r;
  vectors.decay_read[lane] *= r;
}

// For debugging: X, by a warp.
__device__ inline void tap_inverse(const ShortFactors& factors, float* tap) {
  for (int at = threadIdx.x % 32; at < kShort * kShort; at += 32) tap[at] = factors.X[place(at / kShort, at % kShort)];
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
