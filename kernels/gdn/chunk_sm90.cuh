// gdn.chunk_sm90: chunks of C = 64 tokens on wgmma (sm_90a), two kernels.
//   prepare  for every chunk and value head, all in parallel: gates, P and what solves (I + A) v_new = resid, as a Record90
//            (chunk_sm90_prepare.cuh)
//   states   for every sequence, value head and 64 V rows of the state, chunk after chunk (chunk_sm90_state.cuh)
// A, P and b as in chunk_sm80.cuh, the equations of the scan in chunk_sm80_scan.cuh, but v_new is solved by halves of 32
// tokens, D_0 and D_1 the inverses of the diagonal halves of I + A:
//   v_new_0 = D_0 resid_0        v_new_1 = D_1 (resid_1 - A_10 v_new_0)
// Operands: S and exp(b_C - b_j) v_new in io; D, A_10, P, resid (of the second half with A_10 v_new_0 taken off) and v_new
// in tf32. f16 io: scaled by row as in chunk_sm80_scan.cuh.
#pragma once
#include "kernels/device/ptx/bulk.cuh"
#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/setmaxnreg.cuh"
#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/gdn/chunk_sm80_prepare.cuh"
#include "kernels/gdn/chunk_sm80_warp.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

using namespace chunk_sm80;

inline constexpr int kHalf = kC / 2;

// Lower triangular matrices in tf32 as operands b of wgmma tf32: tiles of rows of 32 columns, 128 bytes, in the 128-byte
// swizzle. Within 8 columns they stand in the order 0 2 4 6 1 3 5 7, so that an accumulator is operand a as it is
// (tile_tf32.cuh). place() is where element (i, j) of a tile stands.
struct alignas(1024) Factors90 {
  float D[2][kHalf * kHalf], A10[kHalf * kHalf];
  float P0[kC * kHalf], P1[kHalf * kHalf];  // columns 0 .. 31 of P; rows and columns 32 .. 63
};
__device__ constexpr int place(int i, int j) { return 32 * i + 4 * ((j / 8 * 2 + j % 2) ^ (i & 7)) + j % 8 / 2; }

// What the states need of one chunk and value head; rows past the chunk's valid ones as in Record.
struct Record90 : Factors90 {
  float beta[kC], decay_in[kC], decay_out[kC];  // [i] exp(b_i), exp(b_C - b_i)
};
inline constexpr int kRecordBytes = sizeof(Factors90) + 3 * kC * sizeof(float);
static_assert(kRecordBytes % 16 == 0 && sizeof(Record90) >= kRecordBytes);

}  // namespace deltagauge::kernels::gdn::chunk_sm90
