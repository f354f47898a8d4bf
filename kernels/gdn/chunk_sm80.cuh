// gdn.chunk_sm80: chunks of C = 64 tokens on mma.sync, two kernels.
//   prepare  for every chunk and value head, all in parallel: the gates, (I + A)^-1 and P, written as a Record
//   scan     for every sequence, value head and 16 V rows of the state, chunk after chunk (chunk_sm80_scan.cuh)
// This file: what the two share. Per chunk, b_i the sum of g up to token i, b_C that of its last valid token:
//   A_ij = beta_i exp(b_i - b_j) k_i.k_j for j < i            P_ij = exp(b_i - b_j) q_i.k_j for j <= i
#pragma once
#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/device/varlen.cuh"
#include "kernels/gdn/launch.cuh"
#include "kernels/gdn/state_slot.cuh"

namespace deltagauge::kernels::gdn::chunk_sm80 {

inline constexpr int kC = 64;
inline constexpr int kBlocks = kC / 16;                     // 16 x 16 blocks along a side
inline constexpr int kLower = kBlocks * (kBlocks + 1) / 2;  // blocks on and below the diagonal
__host__ __device__ constexpr int lower(int i, int j) { return i * (i + 1) / 2 + j; }

// A lower triangular [64, 64] matrix X in f32, in the order in which a lane needs it as operand b of mma_m16n8k8_tf32
// (tile_tf32.cuh): at[block][n][lane] holds X_ij of row i = 8 n + group and columns j = 2 t, 2 t + 1, 8 + 2 t, 9 + 2 t.
struct Triangle {
  float4 at[kLower][2][32];
};

// What the scan needs of one chunk and value head. Rows past the chunk's valid ones have beta 0, so their rows of
// (I + A)^-1 are those of I, and the decays of the last valid row.
struct alignas(256) Record {
  Triangle Ainv, P;
  float beta[kC], decay_in[kC], decay_out[kC];  // [i] exp(b_i), exp(b_C - b_i)
};

struct Params {
  Args args;
  void* records;  // [slots, HV] Record (chunk_sm90: Record90)
  // [T, HK, K] normalised rows, or null: q and k are used as they are. chunk_sm90: chunks with rows that were scaled.
  void *q_unit, *k_unit;
  std::int64_t slots;    // slots(args)
  std::int64_t dense;    // rows of each sequence when there are no cu_seqlens
  std::uint32_t* there;  // chunk_sm90: [slots, HK] Said
  bool split;            // Record keeps f32 for products of hi + lo; else its triangles are rounded to tf32
};

// Chunk c of sequence n stands at slot floor(begin_n / 64) + n + c. Slots of different sequences never meet, since a
// sequence of L rows from begin has ceil(L / 64) <= floor((begin + L) / 64) - floor(begin / 64) + 1 chunks; some stay
// unused. So the device finds its work from cu_seqlens alone, and the host needs no lengths.
inline std::int64_t slots(const Args& args) { return args.T / kC + args.N; }
__device__ inline std::int64_t first_slot(std::int64_t begin, std::int64_t n) { return (begin >> 6) + n; }

// args.workspace holds [records | unit k | unit q], each part at a multiple of 256 bytes, the last two where q and k are to
// be normalised.
struct Workspace {
  std::size_t k_unit, q_unit, bytes;
  Workspace(const Args& a, std::size_t record_bytes) {
    const std::size_t unit = a.l2norm ? static_cast<std::size_t>(a.T * a.HK * a.K) * 2 : 0,
                      padded = (unit + 255) / 256 * 256;
    k_unit = static_cast<std::size_t>(slots(a) * a.HV) * record_bytes;
    q_unit = k_unit + padded;
    bytes = q_unit + padded;
  }
};
inline Params params_of(const Args& args, std::size_t record_bytes, bool split) {
  const Workspace layout(args, record_bytes);
  char* base = static_cast<char*>(args.workspace);
  return {.args = args,
          .records = base,
          .q_unit = args.l2norm ? base + layout.q_unit : nullptr,
          .k_unit = args.l2norm ? base + layout.k_unit : nullptr,
          .slots = slots(args),
          .dense = args.cu_seqlens == nullptr ? args.T / args.N : 0,
          .there = reinterpret_cast<std::uint32_t*>(base + layout.bytes),
          .split = split};
}
template <class R>
__device__ R* records_of(const Params& p) {
  return static_cast<R*>(p.records);
}

// As sequence_rows(), without its division.
__device__ inline Rows rows_of(const Params& p, std::int64_t n) {
  if (p.args.cu_seqlens == nullptr) return {n * p.dense, (n + 1) * p.dense};
  return sequence_rows(p.args.cu_seqlens, n, p.args.N, p.args.T);
}

// Taps count chunks without gaps: those of the sequences before n. For debugging: one thread reads all offsets.
template <int kTokens = kC>
__device__ std::int64_t chunks_before(const Params& p, std::int64_t n) {
  std::int64_t chunks = 0;
  for (std::int64_t m = 0; m < n; ++m) {
    const Rows rows = rows_of(p, m);
    chunks += (rows.end - rows.begin + kTokens - 1) / kTokens;
  }
  return chunks;
}

}  // namespace deltagauge::kernels::gdn::chunk_sm80

namespace deltagauge::kernels::gdn {

// One io type and head size; instantiated in inst/chunk_sm80_*.cu.
template <class Io, int kD>
void launch_chunk_sm80_as(const chunk_sm80::Params& params, cudaStream_t stream);
template <class Io, int kD>
void launch_chunk_sm90_as(const chunk_sm80::Params& params, cudaStream_t stream);  // without records; inst/chunk_sm90_*.cu
template <class Io, int kD>
void launch_chunk_sm90_fused_as(const Args& args, cudaStream_t stream);  // inst/chunk_sm90_fused_*.cu
template <class Io, int kD>
void launch_chunk_sm90_segments_as(const chunk_sm80::Params& params, int shift, cudaStream_t stream);  // of 2^shift tokens

}  // namespace deltagauge::kernels::gdn
