// gdn.chunk_sm90: from k, q and the gates of a chunk to what the states need of it (equations: chunk_sm90.cuh), by two
// teams, a warpgroup each; warp w of a team owns rows 16 w .. 16 w + 15.
//   team 0   k k^T, A and X
//   team 1   q k^T and P
#pragma once
#include "kernels/device/ptx/registers.cuh"
#include "kernels/gdn/chunk_sm90.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

// As chunk_sm80::Lane, found anew wherever it is used: addresses that follow from it are then not kept in registers from
// chunk to chunk, which are short.
struct Lane {
  int group, t;
  __device__ Lane() {
    const int lane = ptx::lane_id();
    group = lane / 4;
    t = lane % 4;
  }
};

// Tokens as rows of 128 bytes in the 128-byte swizzle: tiles of 64 channels.
template <class Io, int kD>
struct alignas(1024) Keys90 {
  Io k[kD / 64][kC * 64], q[kD / 64][kC * 64];
  // By kThreads threads, as Tile::load().
  template <int kThreads>
  __device__ void load(const Io* from_k, const Io* from_q, std::int64_t stride, int valid) {
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) {
      Tile<64>::load<kC, kThreads>(shared_address(k[c]), from_k + 64 * c, stride, valid);
      Tile<64>::load<kC, kThreads>(shared_address(q[c]), from_q + 64 * c, stride, valid);
    }
  }
  // By one thread: the full chunk that starts at a row.
  __device__ void load(const Maps90& maps, int row, int head, ptx::Mbarrier& barrier) {
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) {
      ptx::tensor_load(k[c], maps.k, row, head, 64 * c, barrier);
      ptx::tensor_load(q[c], maps.q, row, head, 64 * c, barrier);
    }
  }
  // Rows first, first + step .. below valid of k and q to unit length, a warp a row; also to unit_k and unit_q unless null.
  __device__ void normalise(int first, int step, int valid, Io* unit_k, Io* unit_q, std::int64_t stride) {
    const auto place = [](Io(&of)[kD / 64][kC * 64], int row, int block) {
      return reinterpret_cast<char*>(of[block / 8]) + Tile<64>::offset(row, block % 8);
    };
    for (int row = first; row < valid; row += step) {
      normalise_row<Io, kD>([&](int block) { return place(k, row, block); }, unit_k ? unit_k + row * stride : nullptr);
      normalise_row<Io, kD>([&](int block) { return place(q, row, block); }, unit_q ? unit_q + row * stride : nullptr);
    }
  }
};

// exp(b_i - b_j) for j in a 16-token block before that of i, as a product of what has fallen from i back to the first token
// m of its block and from m back to j; both are at most 1, so that nothing overflows where the gates are strong.
struct BlockDecays {
  float row[kC];                              // exp(b_i - b_m)
  float columns[16 * kLower - 16 * kBlocks];  // exp(b_m - b_j), of block 1, 2 and 3 one after the other
  // Of a block from 1 on: its element j is that of token j.
  __device__ float* column(int block) { return columns + 8 * block * (block - 1); }
  __device__ const float* column(int block) const { return columns + 8 * block * (block - 1); }
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
      reinterpret_cast<float2*>(decays.column(block))[lane] =
          make_float2(ptx::ex2((b_hi - hi.x) + (b_lo - lo.x)), ptx::ex2((b_hi - hi.y) + (b_lo - lo.y)));
  }
}

// 16 x 16 blocks of A in f32; rows of a fragment fall into different banks.
using Block = float[16][16 + 4];
struct HalfFactors {
  Block diagonal[kBlocks];  // A_II, then the inverse of I + A_II
  Block below[2];           // A_10 and A_32 by blocks of 16
};

// Rows 16 first .. of a tile, 16 columns from 16 column on: rows[n] holds row 8 n + group, columns 2 t, 2 t + 1, 8 + 2 t,
// 9 + 2 t. Rounded to tf32.
__device__ inline void store_tile(float* tile, int first, int column, const float4 (&rows)[2]) {
  const Lane l;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    float* row = tile + 32 * (16 * first + 8 * n + l.group) + l.t;  // group is the row's place in its swizzle
    const int block = 4 * column;
    row[4 * (block ^ l.group)] = round_tf32(rows[n].x);
    row[4 * ((block + 1) ^ l.group)] = round_tf32(rows[n].y);
    row[4 * ((block + 2) ^ l.group)] = round_tf32(rows[n].z);
    row[4 * ((block + 3) ^ l.group)] = round_tf32(rows[n].w);
  }
}
__device__ inline void store_block(Block& block, const float4 (&rows)[2]) {
  const Lane l;
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    float* row = block[8 * n + l.group] + 2 * l.t;
    *reinterpret_cast<float2*>(row) = make_float2(rows[n].x, rows[n].y);
    *reinterpret_cast<float2*>(row + 8) = make_float2(rows[n].z, rows[n].w);
  }
}

// A warpgroup: rows of x k^T for tiles x and k as wgmma_rows takes them.
template <class Io, int kD>
__device__ void multiply_keys(Rows64& products, std::uint64_t x, std::uint64_t k) {
  ptx::wgmma_pin(products);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kD / 16; ++step) {
    const std::uint64_t at = step / 4 * (kTileBytes / 16) + 2 * (step % 4);
    ptx::wgmma_m64n64k16_shared<Io>(products, x + at, k + at, step > 0);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(products);
}

// Block row w of exp(b_i - b_j) x k^T, kP: on and below the diagonal, times scale; else below it, times beta_i. store(j,
// rows) takes block j < w as for store_tile, diagonal(rows) block w, which stands in the code once for all warps.
template <bool kP, class Store, class Diagonal>
__device__ void decay_row(const Rows64& products, const Gates& gates, const BlockDecays& decays, float scale, int w,
                          Store store, Diagonal diagonal) {
  const Lane l;
  const int row = 16 * w + l.group;
  const float beta[2] = {kP ? scale : gates.beta[row], kP ? scale : gates.beta[row + 8]};
  const float from_m[2] = {beta[0] * decays.row[row], beta[1] * decays.row[row + 8]};
  const float* to_m = decays.column(w == 0 ? 1 : w);
  const auto take = [](const float(&x)[2][4], auto act) {  // x: [row block][element of the row]
    const float4 rows[2] = {make_float4(x[0][0], x[0][1], x[0][2], x[0][3]),
                            make_float4(x[1][0], x[1][1], x[1][2], x[1][3])};
    act(rows);
  };
  float own[2][4], x[2][4];
#pragma unroll
  for (int j = 0; j < kBlocks; ++j)
    if (j == w)
#pragma unroll
      for (int e = 0; e < 8; ++e) own[e / 4][e % 4] = products[2 * j + e / 4][e % 4];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int column = 16 * w + 8 * half + 2 * l.t;
    float decay[4];
    Decays(gates, row).of(gates, column, decay);
#pragma unroll
    for (int e = 0; e < 4; ++e) {
      const int past = column + e % 2 - (row + 8 * (e / 2));  // columns past the diagonal
      x[e / 2][2 * half + e % 2] = past < (kP ? 1 : 0) ? beta[e / 2] * decay[e] * own[half][e] : 0.0f;
    }
  }
  take(x, diagonal);
#pragma unroll
  for (int j = 0; j < kBlocks - 1; ++j) {
    if (j >= w) break;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 m = *reinterpret_cast<const float2*>(&to_m[16 * j + 8 * half + 2 * l.t]);
#pragma unroll
      for (int e = 0; e < 4; ++e)
        x[e / 2][2 * half + e % 2] = from_m[e / 2] * (e % 2 ? m.y : m.x) * products[2 * j + half][e];
    }
    take(x, [&](const float4(&rows)[2]) { store(j, rows); });
  }
}

// A product's result [16, 32], rows of X^T, as block column `column` of X10.
__device__ inline void store_transposed(float* X10, int column, const float (&x)[4][4]) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float4 rows[2];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float(&from)[4] = x[2 * half + n];
      rows[n] = make_float4(from[0], from[1], from[2], from[3]);
      transpose(rows[n].x, rows[n].y);
      transpose(rows[n].z, rows[n].w);
    }
    store_tile(X10, half, column, rows);
  }
}

// Barriers of a pair of teams: four for team 0, from `first` on, and one for both.
struct TeamBarriers {
  static constexpr int kCount = 5;
  int first;
  __device__ void half(int h) const { ptx::barrier_sync<64>(first + h); }
  __device__ void X10() const { ptx::barrier_sync<64>(first + 2); }
  __device__ void team0() const { ptx::barrier_sync<kTeamThreads>(first + 3); }
  __device__ void both() const { ptx::barrier_sync<2 * kTeamThreads>(first + 4); }
};

// One warp of two: block column J of X_10, transposed, so that a product's result is the next one's operand a. D_0, D_1 are
// there in tf32, and A_10 where X_10 will be.
__device__ inline void make_X10(Factors90& out, int J, const TeamBarriers& barriers) {
  const Lane l;
  float T[4][4] = {}, x[4][4] = {};  // of n-blocks: (A_10 D_0)^T, then -X_10^T
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (k < 2 * J) continue;  // D_0 is lower triangular
    std::uint32_t a[4];
#pragma unroll
    for (int e = 0; e < 4; ++e)  // columns 16 J .. of rows 8 k .. of D_0, in the order of OperandTf32
      a[e] = __float_as_uint(out.D0[place(8 * k + 2 * l.t + e / 2, 16 * J + l.group + 8 * (e % 2))]);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      const int row = 8 * n + l.group;
      ptx::mma_m16n8k8_tf32(T[n], a,
                            {__float_as_uint(out.X10[place(row, 8 * k + 2 * l.t)]),
                             __float_as_uint(out.X10[place(row, 8 * k + 2 * l.t + 1)])});
    }
  }
  barriers.X10();  // A_10 has been read
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const OperandTf32<false> a(T[k]);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      if (k / 2 > n / 2) continue;  // D_1 is lower triangular
      const int row = 8 * n + l.group;
      ptx::mma_m16n8k8_tf32(
          x[n], a.hi,
          {__float_as_uint(out.D1[place(row, 8 * k + 2 * l.t)]), __float_as_uint(out.D1[place(row, 8 * k + 2 * l.t + 1)])});
    }
  }
#pragma unroll
  for (int e = 0; e < 16; ++e) x[e / 4][e % 4] = -x[e / 4][e % 4];
  store_transposed(out.X10, J, x);
}

// A team: block row w of A from k k^T, then X. Of the diagonal halves warps 2 h and 2 h + 1 make half h: D_10 = -D_11 A_10
// D_00, blocks of 16, by products in 3 x tf32 (22 bits), on D^T, so that a product's result is the next one's operand a.
// Warps whose w % 2 is 0 make D_10, the others X_10.
__device__ inline void make_X(const Rows64& kk, const Gates& gates, const BlockDecays& decays, int w, HalfFactors& factors,
                              Factors90& out, const TeamBarriers& barriers) {
  const Lane l;
  const int half = w / 2;
  float* D = half == 0 ? out.D0 : out.D1;
  decay_row<false>(
      kk, gates, decays, 1.0f, w,
      [&](int j, const float4(&rows)[2]) {
        if (j / 2 == half) return store_block(factors.below[half], rows);
        store_tile(out.X10, w - 2, j, rows);  // A_10
      },
      [&](const float4(&rows)[2]) { store_block(factors.diagonal[w], rows); });
  __syncwarp();  // A_ww is there
  float x[16];
  invert_block<16 + 4>(factors.diagonal[w][0], x);
  __syncwarp();  // and has been read
  const int column = threadIdx.x % 16;
  if (threadIdx.x % 32 < 16) {
#pragma unroll
    for (int i = 0; i < 16; ++i) factors.diagonal[w][i][column] = x[i];
  } else {
#pragma unroll
    for (int i = 0; i < 16; ++i) D[place(16 * (w % 2) + i, 16 * (w % 2) + column)] = round_tf32(x[i]);
  }
  barriers.half(half);  // both inverses and the block below of this half are there
  if (w % 2 == 0) {
    const int first = 2 * half;
    Transposed D00, product[1] = {}, D10[1] = {};
#pragma unroll
    for (int k = 0; k < 2; ++k)
#pragma unroll
      for (int e = 0; e < 4; ++e) D00[k][e] = factors.diagonal[first][8 * k + 2 * l.t + e % 2][l.group + 8 * (e / 2)];
    multiply_add<1>(product, {&D00}, {factors.below[half][0]}, {16 + 4});
    multiply_add<1>(D10, {&product[0]}, {factors.diagonal[first + 1][0]}, {16 + 4});
    negate(D10[0]);
    float4 rows[2];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      rows[n] = make_float4(D10[0][n][0], D10[0][n][1], D10[0][n][2], D10[0][n][3]);
      transpose(rows[n].x, rows[n].y);
      transpose(rows[n].z, rows[n].w);
    }
    store_tile(D, 1, 0, rows);
  }
  barriers.team0();  // D_0, D_1 and A_10 are there
  if (w % 2 != 0) make_X10(out, half, barriers);
}

// Team 1: block row w of scale P from q k^T.
__device__ inline void make_P(const Rows64& qk, const Gates& gates, const BlockDecays& decays, float scale, int w,
                              Factors90& out) {
  decay_row<true>(
      qk, gates, decays, scale, w,
      [&](int j, const float4(&rows)[2]) {
        if (j < 2)
          store_tile(out.P0, w, j, rows);
        else
          store_tile(out.P1, w - 2, j - 2, rows);
      },
      [&](const float4(&rows)[2]) { store_tile(w < 2 ? out.P0 : out.P1, w % 2, w % 2, rows); });
}

// One warp: gates, decays and vectors of a chunk and value head.
__device__ inline void make_vectors(const RawGates<2>& raw, float scale, Gates& gates, BlockDecays& decays,
                                    Vectors90& vectors) {
  const GateSums<2> of = make_gates(raw, gates);
  store_pair(vectors.beta, {kTf32Up * of.beta[0], kTf32Up * of.beta[1]});
  store_pair(vectors.decay_in, of.in);
  store_pair(vectors.decay_read, {scale * of.in[0], scale * of.in[1]});
  store_pair(vectors.decay_out, of.out);
  __syncwarp();  // the gates are there
  make_block_decays(gates, decays);
}

// For debugging: X, by a pair of teams.
__device__ inline void tap_inverse(const Factors90& out, float* tap) {
  for (int at = threadIdx.x % (2 * kTeamThreads); at < kC * kC; at += 2 * kTeamThreads) {
    const int i = at / kC, j = at % kC;
    const float* X = i < kHalf ? out.D0 : j < kHalf ? out.X10 : out.D1;
    tap[at] = i < kHalf && j >= kHalf ? 0.0f : X[place(i % kHalf, j % kHalf)];
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
