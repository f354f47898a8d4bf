// gdn.chunk_sm90: the whole of a (sequence, value head) in one block, chunk after chunk of C = 64 tokens, on wgmma (sm_90a).
// Equations and names as in chunk_sm80.cuh and chunk_sm80_scan.cuh. A block is made of warpgroups of two roles:
//   team   gates, (I + A)^-1 and P of a chunk, ahead of those who need it (chunk_sm90_team.cuh). Team j of several takes
//          every chunk c with c % teams == j
//   state  64 V rows of the state: S k, S q, v_new, o, S' (chunk_sm90_state.cuh)
// and they meet at three kinds of barriers:
//   ready[c % 2]        the team's 128 threads: k, q, gates, (I + A)^-1 and P of chunk c are in shared memory
//   used_pair[c % 2]    the state warps: they have read (I + A)^-1 and P of chunk c
//   used_stage[c % 3]   the same of k, q and gates
// Where a value is rounded, and to what, is as in chunk_sm80 without split.
#pragma once
#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/setmaxnreg.cuh"
#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/gdn/chunk_sm80_prepare.cuh"
#include "kernels/gdn/chunk_sm80_warp.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

using namespace chunk_sm80;

inline constexpr int kGroup = 128;  // threads of a warpgroup
inline constexpr int kStages = 3, kPairs = 2;
inline constexpr int kTileBytes = kC * 128;  // a tile of 64 rows of 128 bytes

template <int kHeadSize, int kStateGroups, int kTeamGroups>
struct Shape90 {
  static constexpr int D = kHeadSize, states = kStateGroups, teams = kTeamGroups, threads = kGroup * (states + teams);
  static constexpr int splits = D / (64 * states);  // blocks of a (sequence, head)
  // Registers a thread after the roles part; together no more than the block starts with, 384 threads of 168.
  static constexpr int team_registers = teams == 1 ? 104 : 128, state_registers = teams == 1 ? 200 : 240;
  static_assert(kGroup * (teams * team_registers + states * state_registers) <= 384 * 168 && states + teams == 3);
};

// A lower triangular [64, 64] matrix in f32 as operand b of wgmma_m64n64k8_tf32: two tiles of 32 columns in the 128-byte
// swizzle. Within 8 columns they stand in the order 0 2 4 6 1 3 5 7, so that an accumulator is operand a as it is
// (tile_tf32.cuh).
struct alignas(1024) Square {
  float at[2][kC * 32];
};
// As for a Triangle.
__device__ inline void store_block(Square& square, int i, int j, float4 (&rows)[2], bool f32) {
  const Lane l;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    float4 x = rows[n];
    if (!f32) x = make_float4(round_tf32(x.x), round_tf32(x.y), round_tf32(x.z), round_tf32(x.w));
    float* row = square.at[j / 2] + 32 * (16 * i + 8 * n + l.group) + l.t;  // group is the row's place in its swizzle
    const int block = 4 * (j % 2);
    row[4 * (block ^ l.group)] = x.x;
    row[4 * ((block + 1) ^ l.group)] = x.y;
    row[4 * ((block + 2) ^ l.group)] = x.z;
    row[4 * ((block + 3) ^ l.group)] = x.w;
  }
}

// k and q of a chunk as tiles of 64 channels.
template <class Io, int kD>
struct alignas(1024) Keys {
  Io k[kD / 64][kC * 64], q[kD / 64][kC * 64];
};
// What goes with its tokens.
struct Tokens {
  Gates gates;
  float beta[kC], decay_in[kC], decay_out[kC];
};

// exp(b_i - b_j) for j in a 16-token block before that of i, as a product of what has fallen from i back to the first token
// m of its block and from m back to j; both are at most 1, so that nothing overflows where the gates are strong.
struct BlockDecays {
  float row[kC];                                 // exp(b_i - b_m)
  float column[kBlocks - 1][kC - kC / kBlocks];  // [i's block - 1][j]: exp(b_m - b_j)
};
// One warp, two tokens a lane, after the gates.
__device__ inline void make_block_decays(const Gates& gates, BlockDecays& decays) {
  const int lane = threadIdx.x % 32;
  const float2 hi = reinterpret_cast<const float2*>(gates.hi)[lane], lo = reinterpret_cast<const float2*>(gates.lo)[lane];
  const int m = lane & ~7;
  const float m_hi = __shfl_sync(kAll, hi.x, m), m_lo = __shfl_sync(kAll, lo.x, m);
  reinterpret_cast<float2*>(decays.row)[lane] =
      make_float2(ptx::ex2((hi.x - m_hi) + (lo.x - m_lo)), ptx::ex2((hi.y - m_hi) + (lo.y - m_lo)));
#pragma unroll
  for (int block = 1; block < kBlocks; ++block) {
    const float b_hi = __shfl_sync(kAll, hi.x, 8 * block), b_lo = __shfl_sync(kAll, lo.x, 8 * block);
    if (lane < 8 * block)
      reinterpret_cast<float2*>(decays.column[block - 1])[lane] =
          make_float2(ptx::ex2((b_hi - hi.x) + (b_lo - lo.x)), ptx::ex2((b_hi - hi.y) + (b_lo - lo.y)));
  }
}

struct Pair {
  Square Ainv, P;
};

template <class Io, class Shape>
struct alignas(1024) Smem90 {
  Pair pairs[kPairs];
  Keys<Io, Shape::D> stages[kStages];
  Tokens tokens[kStages];
  Columns16 v[2][4 * Shape::states];  // by warp; v, then o
  Factors factors[Shape::teams];
  BlockDecays decays[Shape::teams];
  ptx::Mbarrier ready[kPairs], used_pair[kPairs], used_stage[kStages];
};

// What a block works on.
struct Work {
  std::int64_t n, h, hk, begin, end, chunks;
  int column;  // first V row of the block
  StateSlot slot;
  __device__ int valid(std::int64_t chunk) const {
    const std::int64_t left = end - begin - chunk * kC;
    return static_cast<int>(left < kC ? left : kC);
  }
};

}  // namespace deltagauge::kernels::gdn::chunk_sm90
