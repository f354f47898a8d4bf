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

  // Of row i, token i of k or i - 32 of q, by a lane.
  __device__ float norm(int i) {
    return inverse_norm<Io, kFusedD>([&](int block) {
             return reinterpret_cast<uint4*>(reinterpret_cast<char*>(keys[block / 8]) + Tile<64>::offset(i, block % 8));
           })
        .r;
  }
};

// One warp, a token a lane.
__device__ inline void store_short_gates(const GateSums<1>& of, float scale, HalfGates& gates, ShortVectors& vectors) {
  const int lane = threadIdx.x % 32;
  gates.hi[lane] = of.hi[0];
  gates.lo[lane] = of.lo[0];
  gates.beta[lane] = of.beta[0];
  (lane < 16 ? gates.column[lane] : gates.row[lane - 16]) = from_middle(of, 0, 16, lane < 16);
  store_vectors<true, true>(of, scale, nullptr, vectors);
}

// For debugging: X, by a warp.
__device__ inline void tap_inverse(const ShortFactors& factors, float* tap) {
  for (int at = threadIdx.x % 32; at < kShort * kShort; at += 32) tap[at] = factors.X[place(at / kShort, at % kShort)];
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
