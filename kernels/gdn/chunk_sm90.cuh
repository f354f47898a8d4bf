// gdn.chunk_sm90: chunks of C = 64 tokens on wgmma (sm_90a), two kernels.
//   prepare  for every chunk and value head, all in parallel: gates, P and what solves (I + A) v_new = resid, as a Record90
//            (chunk_sm90_prepare.cuh)
//   states   for every sequence, value head and 64 V rows of the state, chunk after chunk (chunk_sm90_state.cuh)
// A, P and b as in chunk_sm80.cuh, the equations of the scan in chunk_sm80_scan.cuh. X = (I + A)^-1 by halves of 32 tokens:
//   X_00 = D_0    X_11 = D_1    X_10 = -D_1 (A_10 D_0)        D_0, D_1 the inverses of the diagonal halves of I + A
// Operands: S and exp(b_C - b_j) v_new in io; X, scale P, and D, A_10 and A_10 D_0 on the way to X in tf32; resid and v_new
// in tf32 by kTf32Up below. f16 io: scaled by row as in chunk_sm80_scan.cuh.
#pragma once
#include "kernels/device/ptx/bulk.cuh"
#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/setmaxnreg.cuh"
#include "kernels/device/ptx/tensor.cuh"
#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/gdn/chunk_sm80_prepare.cuh"
#include "kernels/gdn/chunk_sm80_warp.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

using namespace chunk_sm80;

inline constexpr int kHalf = kC / 2;
inline constexpr int kTileBytes = kC * 128;  // a tile of 64 rows of 128 bytes

// The tensor core cuts the low 13 bits of a tf32 operand. Of x kTf32Up it leaves x where x has 11 bits already, and else a
// neighbour of x with no mean error (core/half.h): in place of rounding, which takes two instructions a value.
inline constexpr float kTf32Up = 1 + 0.7213f / 2048;

// Of the tensors that are copied in boxes of 64 tokens and 64 channels (chunk_sm90_fused: 32 tokens). Chunks that are not
// full, whose boxes would hold rows of other sequences, are copied by threads.
struct Maps90 {
  CUtensorMap k, q, v, o, k_scaled, q_scaled;  // of k_unit and q_unit, where there are such
};

// Lower triangular matrices in tf32 as operands b of wgmma tf32: tiles of rows of 32 columns, 128 bytes, in the 128-byte
// swizzle. Within 8 columns they stand in the order 0 2 4 6 1 3 5 7, so that an accumulator is operand a as it is
// (tile_tf32.cuh). place() is where element (i, j) of a tile stands.
struct alignas(16) Inverse90 {
  float D0[kHalf * kHalf], X10[kHalf * kHalf], D1[kHalf * kHalf];  // columns 0 .. 31 of X are D0, then X10
};
struct alignas(16) Masked90 {
  float P0[kC * kHalf], P1[kHalf * kHalf];  // columns 0 .. 31 of scale P; rows and columns 32 .. 63
};
__device__ constexpr int place(int i, int j) { return 32 * i + 4 * ((j / 8 * 2 + j % 2) ^ (i & 7)) + j % 8 / 2; }

// By token: kTf32Up beta_i, exp(b_i), exp(b_C - b_i), scale exp(b_i); rows past the chunk's valid ones as in Record. Where q
// and k are to be normalised, the first two over |k_i| and the last over |q_i|.
template <int kTokens>
struct alignas(16) VectorsOf {
  float beta[kTokens], decay_in[kTokens], decay_out[kTokens];
  float whole;  // exp(b_C)
  alignas(16) float decay_read[kTokens];
};
using Vectors90 = VectorsOf<kC>;
// What the states need of one chunk and value head. Copied in lines of L2.
struct alignas(128) Record90 {
  Inverse90 X;
  Masked90 P;
  Vectors90 vectors;
  float k_norms[kC];  // for taps: 1 / |k_i|, where k is to be normalised
};

// Flags of the items of the first kernel, behind the rest of the workspace. The last two only where q and k are to be
// normalised: the chunk stands in k_unit or q_unit, as it has rows that were scaled.
enum Said : std::uint32_t { kThere = 1, kScaledK = 2, kScaledQ = 4 };
inline std::size_t there_bytes(const Args& args) {
  return static_cast<std::size_t>(slots(args) * args.HK) * sizeof(std::uint32_t);
}

// The same in the shared memory of the states: where products are under way behind each other, operand b takes all 64 rows
// of a tile (add_triangle), so that rows 0 .. 31 stand before P1 as zeros, which are written once.
struct alignas(1024) Factors90InShared {
  float D0[kHalf * kHalf], X10[kHalf * kHalf], D1[kHalf * kHalf];
  float P0[kC * kHalf], zero_P1[kHalf * kHalf], P1[kHalf * kHalf];
  __device__ void clear_zeros(int thread, int threads) {
    for (int i = thread; i < kHalf * kHalf; i += threads) zero_P1[i] = 0;
  }
};

}  // namespace deltagauge::kernels::gdn::chunk_sm90
