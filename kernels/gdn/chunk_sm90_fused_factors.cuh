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

  __device__ uint4& at(int row, int block) {  // 16 bytes of a token of k, of q from row 32 on
    return *reinterpret_cast<uint4*>(reinterpret_cast<char*>(keys[block / 8]) + Tile<64>::offset(row, block % 8));
  }
  // A warp, a token a lane: those of k that must be are multiplied by 2^-96.
  __device__ void scale_keys(float norm) {
    for (int block = 0; block < kFusedD / 8; ++block) scale_row<Io>(norm, at(ptx::lane_id(), block));
  }
  // A warp, a token of q a lane: its inverse norm. kScale: those that must be by the norm they have are multiplied first.
  template <bool kScale>
  __device__ float query_norm(float norm) {
    const int lane = ptx::lane_id();
    float sums[4] = {};
#pragma unroll(kScale ? 1 : 4)
    for (int block = 0; block < kFusedD / 8; ++block) {
      uint4& x = at(kShort + lane, block);
      if constexpr (kScale) scale_row<Io>(norm, x);
      const std::uint32_t pairs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float2 v = unpack2<Io>(pairs[e]);
        sums[e] = fmaf(v.x, v.x, fmaf(v.y, v.y, sums[e]));
      }
    }
    const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    return Fast::inverse_sqrt(kScale && norm < kLeastNorm ? sum : sum + 1e-6f);
  }
};

struct ShortGates : HalfGates {
  // Where q and k are to be normalised:
  float read[kShort], k_norms[kShort];  // scale / |q_i|, 1 / |k_i|
  std::uint32_t k_past;                 // whether rows of k had to be scaled
};

// One warp, a token a lane.
__device__ inline void store_short_gates(const GateSums<1>& of, float scale, ShortGates& gates, ShortVectors& vectors) {
  const int lane = threadIdx.x % 32;
  gates.hi[lane] = of.hi[0];
  gates.lo[lane] = of.lo[0];
  gates.beta[lane] = of.beta[0];
  (lane < 16 ? gates.column[lane] : gates.row[lane - 16]) = from_middle(of, 0, 16, lane < 16);
  store_vectors<true, true>(of, scale, nullptr, nullptr, vectors);
}

// For debugging: X, by a warp. norms: 1 / |k_i|, or null: k is used as it is.
__device__ inline void tap_inverse(const ShortFactors& factors, const float* norms, float* tap) {
  for (int at = threadIdx.x % 32; at < kShort * kShort; at += 32) {
    const int i = at / kShort, j = at % kShort;
    tap[at] = (norms != nullptr && i != j ? norms[j] / norms[i] : 1.0f) * factors.X[place(i, j)];
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
