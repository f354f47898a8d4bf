// From k, q and the gates of 32 tokens to X = (I + A)^-1 and scale P (equations: chunk_sm90.cuh), a warp each, by blocks of
// 16 on mma.sync: chunks of gdn.chunk_sm90_fused, halves of those of gdn.chunk_sm90. Of the latter, a warp for 16 rows of
// what stands below the halves.
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

// q and k are not normalised themselves. With R = diag(1 / |k_i|), 1 / |k_i| = 1 / sqrt(sum x^2 + 1e-6), and A' = A with
// beta_i over |k_i|^2, of keys as they are, X' = (I + A')^-1 and resid over |k_i| give X' R resid = R v_new, with which u k
// and P v_new need no norm of k. 1 / |q_i| goes into rows of P. Sums of squares are diagonals of products. Past 2^126
// products could pass FP32: a row whose inverse norm is below kLeastNorm is multiplied by 2^-96, which is exact but for
// elements of no weight.
inline constexpr float kLeastNorm = 0x1p-63f;
// Of 8 elements of a row.
template <class Io>
__device__ void scale_row(float norm, uint4& x) {
  if (!(norm < kLeastNorm)) return;
  std::uint32_t pairs[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
  for (std::uint32_t& pair : pairs) {
    const float2 v = unpack2<Io>(pair);
    pair = pack2<Io>(0x1p-96f * v.x, 0x1p-96f * v.y);
  }
  x = {pairs[0], pairs[1], pairs[2], pairs[3]};
}

// Tokens as rows of 128 bytes in the 128-byte swizzle: tiles of 64 channels.
template <class Io, int kD>
struct alignas(1024) Tokens90 {
  Io tiles[kD / 64][kC * 64];
  // By kThreads threads, as Tile::load().
  template <int kThreads>
  __device__ void load(const Io* from, std::int64_t stride, int valid) {
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) Tile<64>::load<kC, kThreads>(shared_address(tiles[c]), from + 64 * c, stride, valid);
  }
  // By one thread: the full chunk that starts at a row.
  __device__ void load(const CUtensorMap& map, int row, int head, ptx::Mbarrier& barrier) {
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) ptx::tensor_load(tiles[c], map, row, head, 64 * c, barrier);
  }
  // Of 16 bytes of a row.
  __device__ uint4* place(int row, int block) {
    return reinterpret_cast<uint4*>(reinterpret_cast<char*>(tiles[block / 8]) + Tile<64>::offset(row, block % 8));
  }
  // By kThreads threads: rows that must be are multiplied by 2^-96, and the valid ones go to global memory.
  template <int kThreads>
  __device__ void scale(const float (&norms)[kC], int valid, Io* to, std::int64_t stride) {
    constexpr int kBlocks = kD / 8;
    for (int i = ptx::thread_id() % kThreads; i < kC * kBlocks; i += kThreads) {
      const int row = i / kBlocks, block = i % kBlocks;
      uint4& x = *place(row, block);
      scale_row<Io>(norms[row], x);
      if (row < valid) reinterpret_cast<uint4*>(to + row * stride)[block] = x;
    }
  }
};

// Of 32 tokens: b_i and beta_i as Gates has them, and what exp(b_i - b_j) is made of for i in the second block of 16 tokens
// and j in the first: what has fallen from i back to b_16, and from there back to j. Both are at most 1, so that nothing
// overflows where the gates are strong.
struct alignas(16) HalfGates {
  float hi[kHalf], lo[kHalf], beta[kHalf];
  float row[16], column[16];  // exp(b_i - b_16), exp(b_16 - b_j)
};
// The same across the halves of a chunk of 64.
struct alignas(16) ChunkGates {
  HalfGates half[2];
  float row[kHalf], column[kHalf];  // exp(b_i - b_32), exp(b_32 - b_j)
};
// exp(b_i - b_m), or before m exp(b_m - b_i), for a lane's token e; m is the first token of lane `middle`.
template <int kEach>
__device__ float from_middle(const GateSums<kEach>& of, int e, int middle, bool before) {
  const float from = of.hi[e] - __shfl_sync(kAll, of.hi[0], middle), rest = of.lo[e] - __shfl_sync(kAll, of.lo[0], middle);
  return ptx::ex2(before ? -from - rest : from + rest);
}
// One warp: what goes with k and with q.
template <bool kK, bool kQ, int kEach>
__device__ void store_vectors(const GateSums<kEach>& of, float scale, const float* k_norms, const float* q_norms,
                              VectorsOf<32 * kEach>& vectors) {
  const int lane = threadIdx.x % 32;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int i = kEach * lane + e;
    if constexpr (kK) {
      const float r = k_norms ? k_norms[i] : 1.0f;
      vectors.beta[i] = r * (kTf32Up * of.beta[e]);
      vectors.decay_in[i] = r * of.in[e];
      vectors.decay_out[i] = of.out[e];
    }
    if constexpr (kQ) vectors.decay_read[i] = (q_norms ? q_norms[i] : 1.0f) * (scale * of.in[e]);
  }
  if (kK && lane == 31) vectors.whole = of.in[kEach - 1];
}

// 16 x 16 blocks of A in f32; rows of a fragment fall into different banks.
using Block = float[16][16 + 4];
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

// Blocks (0, 0), (1, 0) and (1, 1) of 16 tokens of x k^T, as accumulators of two n-blocks of 8; x is k or, kQ, q. k, q:
// where the 32 tokens stand in the first tile of 64 channels.
using HalfProducts = float[3][2][4];
template <class Io, int kD, bool kQ>
__device__ void multiply_half(const Io* k_rows, const Io* q_rows, HalfProducts& d) {
#pragma unroll
  for (int e = 0; e < 24; ++e) d[e / 8][e / 4 % 2][e % 4] = 0;
  const std::uint32_t lane_at = Tile<64>::row_major(threadIdx.x % 32);
#pragma unroll
  for (int c = 0; c < kD; c += 16) {
    const std::uint32_t tile = c / 64 * kTileBytes + lane_at;
    std::uint32_t k[2][4], x[2][4];
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      ptx::ldmatrix_x4(k[i], Tile<64>::at(shared_address(k_rows) + tile, 16 * i, c % 64));
      if constexpr (kQ) ptx::ldmatrix_x4(x[i], Tile<64>::at(shared_address(q_rows) + tile, 16 * i, c % 64));
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
// Rows x of 16 tokens times those of 32, as two blocks.
using RowProducts = float[2][2][4];
template <class Io, int kD>
__device__ void multiply_row(const Io* x_rows, const Io* k_rows, RowProducts& d) {
#pragma unroll
  for (int e = 0; e < 16; ++e) d[e / 8][e / 4 % 2][e % 4] = 0;
  const std::uint32_t lane_at = Tile<64>::row_major(threadIdx.x % 32);
#pragma unroll
  for (int c = 0; c < kD; c += 16) {
    const std::uint32_t tile = c / 64 * kTileBytes + lane_at;
    std::uint32_t x[4], k[2][4];
    ptx::ldmatrix_x4(x, Tile<64>::at(shared_address(x_rows) + tile, 0, c % 64));
#pragma unroll
    for (int i = 0; i < 2; ++i) ptx::ldmatrix_x4(k[i], Tile<64>::at(shared_address(k_rows) + tile, 16 * i, c % 64));
#pragma unroll
    for (int e = 0; e < 4; ++e) ptx::mma_m16n8k16<Io>(d[e / 2][e % 2], x, k[e / 2][e % 2], k[e / 2][e % 2 + 2]);
  }
}

// Blocks of 16 tokens on the diagonal of x x^T, as HalfProducts has them. rows: where they stand, as k_rows.
template <int kBlocks>
using Squares = float[kBlocks][2][4];
template <class Io, int kD, int kBlocks>
__device__ void square_rows(const Io* rows, Squares<kBlocks>& d) {
#pragma unroll
  for (int e = 0; e < 8 * kBlocks; ++e) d[e / 8][e / 4 % 2][e % 4] = 0;
  const std::uint32_t lane_at = Tile<64>::row_major(ptx::lane_id());
#pragma unroll
  for (int c = 0; c < kD; c += 16) {
    const std::uint32_t tile = c / 64 * kTileBytes + lane_at;
#pragma unroll
    for (int i = 0; i < kBlocks; ++i) {
      std::uint32_t x[4];
      ptx::ldmatrix_x4(x, Tile<64>::at(shared_address(rows) + tile, 16 * i, c % 64));
#pragma unroll
      for (int n = 0; n < 2; ++n) ptx::mma_m16n8k16<Io>(d[i][n], x, x[n], x[n + 2]);
    }
  }
}
// One warp: inverse norms of 32 tokens from their blocks of squares, to 2^-22, which is far below the operands' 2^-12.
// again: the rows whose norm there was below kLeastNorm have been scaled since. Whether one is below it.
template <class Io>
__device__ bool inverse_norms(const float (&first)[2][4], const float (&second)[2][4], bool again, float* norms) {
  const Lane l;
  const int lane = ptx::lane_id();
  const bool scaled = again && norms[lane] < kLeastNorm;
  __syncwarp();  // the old ones have been read
  if (l.t == l.group / 2) {
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      norms[8 * n + l.group] = l.group % 2 ? first[n][2 * n + 1] : first[n][2 * n];
      norms[16 + 8 * n + l.group] = l.group % 2 ? second[n][2 * n + 1] : second[n][2 * n];
    }
  }
  __syncwarp();  // the sums are there
  // 1e-6 is less than the last bit of the sum of a row that was scaled, as it was before.
  const float sum = norms[lane], r = Fast::inverse_sqrt(scaled ? sum : sum + 1e-6f);
  norms[lane] = r;
  return std::is_same_v<Io, __nv_bfloat16> && __any_sync(kAll, r < kLeastNorm);
}

// Rows 8 r + group of a block, as for store_tile.
__device__ inline void take_rows(const float (&x)[2][4], float4 (&rows)[2]) {
#pragma unroll
  for (int r = 0; r < 2; ++r) rows[r] = make_float4(x[r][0], x[r][1], x[r][2], x[r][3]);
}
// A block below the diagonal: factor of its row times factor of its column times the product.
__device__ inline void decay_block(const float (&products)[2][4], const float (&from)[2], const float* column, int t,
                                   float4 (&rows)[2]) {
  float x[2][4];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const float2 m = *reinterpret_cast<const float2*>(&column[8 * n + 2 * t]);
#pragma unroll
    for (int e = 0; e < 4; ++e) x[e / 2][2 * n + e % 2] = from[e / 2] * (e % 2 ? m.y : m.x) * products[n][e];
  }
  take_rows(x, rows);
}

// exp(b_i - b_j) x k^T times factor(i), on and below the diagonal with kP, else below it. store(i, j, rows) takes block
// (i, j) as for store_tile.
template <bool kP, class Factor, class Store>
__device__ void decay_half(const HalfProducts& products, const HalfGates& gates, Factor factor, Store store) {
  const Lane l;
#pragma unroll
  for (int block = 0; block < 3; ++block) {
    const int i = (block + 1) / 2, j = block / 2;
    float4 rows[2];
    float own[2];
#pragma unroll
    for (int r = 0; r < 2; ++r) own[r] = factor(16 * i + 8 * r + l.group);
    if (i != j) {
      const float from[2] = {own[0] * gates.row[l.group], own[1] * gates.row[8 + l.group]};
      decay_block(products[block], from, gates.column, l.t, rows);
    } else {
      float x[2][4];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const int column = 8 * n + 2 * l.t;
        float decay[4];
        Decays(gates, 16 * i + l.group).of(gates, 16 * i + column, decay);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int past = column + e % 2 - (l.group + 8 * (e / 2));  // columns past the diagonal
          x[e / 2][2 * n + e % 2] = past < (kP ? 1 : 0) ? own[e / 2] * (decay[e] * products[block][n][e]) : 0.0f;
        }
      }
      take_rows(x, rows);
    }
    store(i, j, rows);
  }
}

// One warp: P of 32 tokens to tile P, from q k^T and scale as decay_half() takes it.
template <class Scale>
__device__ void make_half_P(const HalfProducts& products, const HalfGates& gates, Scale scale, float* P) {
  decay_half<true>(products, gates, scale, [&](int i, int j, const float4(&rows)[2]) { store_tile(P, i, j, rows); });
}

// Blocks of A in f32, then those on the diagonal as the inverses of I + A_II.
struct alignas(16) HalfBlocks {
  Block first;
  float apart[16];  // lanes of both halves of a warp fall into different banks
  Block second, below;
  __device__ Block& diagonal(int i) { return i == 0 ? first : second; }
};

// One warp: X of 32 tokens to tile X and, unless null, X^T to another, from k k^T and beta as decay_half takes it. X_II by
// substitution, half a warp each, then X_10 = -X_11 A_10 X_00 by products in 3 x tf32 (22 bits), on X^T, so that a product's
// result is the next one's operand a.
template <class Beta>
__device__ void make_half_X(const HalfProducts& products, const HalfGates& gates, Beta beta, HalfBlocks& blocks, float* X,
                            float* transposed) {
  const Lane l;
  decay_half<false>(products, gates, beta, [&](int i, int j, const float4(&rows)[2]) {
    store_block(i != j ? blocks.below : blocks.diagonal(i), rows);
  });
  __syncwarp();  // A is there
  const int half = threadIdx.x % 32 / 16, column = threadIdx.x % 16;
  Block& own = blocks.diagonal(half);
  float x[16];
  invert_block<16 + 4>(own[0], x);
  __syncwarp();  // A_II has been read
#pragma unroll
  for (int i = 0; i < 16; ++i) {
    own[i][column] = x[i];
    X[place(16 * half + i, 16 * half + column)] = round_tf32(x[i]);
  }
  if (transposed != nullptr) {
    const int row = 16 * half + column;
#pragma unroll
    for (int b = 0; b < 4; ++b) {  // columns 8 (b / 2) + b % 2 + 0, 2, 4, 6 of the block
      const float* from = &x[b / 2 * 8 + b % 2];
      *reinterpret_cast<float4*>(&transposed[place(row, 16 * half + b / 2 * 8 + b % 2)]) =
          make_float4(round_tf32(from[0]), round_tf32(from[2]), round_tf32(from[4]), round_tf32(from[6]));
    }
  }
  __syncwarp();  // the inverses are there
  Transposed X00, product[1] = {}, X10[1] = {};
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) X00[i][e] = blocks.first[8 * i + 2 * l.t + e % 2][l.group + 8 * (e / 2)];
  multiply_add<1>(product, {&X00}, {blocks.below[0]}, {16 + 4});
  multiply_add<1>(X10, {&product[0]}, {blocks.second[0]}, {16 + 4});
  negate(X10[0]);
  float4 rows[2];
  if (transposed != nullptr) {
#pragma unroll
    for (int r = 0; r < 2; ++r)
      rows[r] = make_float4(X10[0][0][2 * r], X10[0][0][2 * r + 1], X10[0][1][2 * r], X10[0][1][2 * r + 1]);
    store_tile(transposed, 0, 1, rows);
  }
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    rows[n] = make_float4(X10[0][n][0], X10[0][n][1], X10[0][n][2], X10[0][n][3]);
    transpose(rows[n].x, rows[n].y);
    transpose(rows[n].z, rows[n].w);
  }
  store_tile(X, 1, 0, rows);
}

// One warp, for tokens 16 r .. of a chunk's second half, r = 0 or 1: rows of exp(b_i - b_j) x k^T, j in the first half,
// times factor(i), i counted from 16 r on, to rows 16 r .. of a tile [32, 32], from x k^T.
template <class Factor>
__device__ void make_below(const RowProducts& products, const ChunkGates& gates, Factor factor, int r, float* tile) {
  const Lane l;
  float from[2];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    const int row = 8 * n + l.group;
    from[n] = factor(row) * gates.row[16 * r + row];
  }
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    float4 rows[2];
    decay_block(products[j], from, gates.column + 16 * j, l.t, rows);
    store_tile(tile, r, j, rows);
  }
}

// One warp of two: columns 16 J .. of X_10 = -D_1 (A_10 D_0) over A_10, which stands where X_10 will be. On X^T, so that a
// product's result is the next one's operand a. transposed: D_0^T. read(): both warps have read A_10.
template <class Read>
__device__ void make_X10(float* X10, const float* transposed, const float* D1, int J, Read read) {
  const int lane = threadIdx.x % 32, matrix = lane / 8, row = lane % 8;
  const auto at = [&](const float* tile, int first, int block) {  // a row's 16 bytes of columns in the order of place()
    return shared_address(tile) + 128 * (first + row) + 16 * (block ^ row);
  };
  float T[4][4] = {}, x[4][4] = {};  // of n-blocks: (A_10 D_0)^T, then X_10^T
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {  // k = 16 pair ..
    if (pair < J) continue;               // D_0 is lower triangular
    std::uint32_t a[2][4];
#pragma unroll
    for (int k = 0; k < 2; ++k)
      ptx::ldmatrix_x4(a[k], at(transposed, 16 * J + 8 * (matrix % 2), 4 * pair + 2 * k + matrix / 2));
#pragma unroll
    for (int n = 0; n < 4; ++n) {
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, at(X10, 8 * n, 4 * pair + matrix));
#pragma unroll
      for (int k = 0; k < 2; ++k) ptx::mma_m16n8k8_tf32(T[n], a[k], {b[2 * k], b[2 * k + 1]});
    }
  }
  read();
#pragma unroll
  for (int pair = 0; pair < 2; ++pair) {
    const OperandTf32<false> a[2] = {OperandTf32<false>(T[2 * pair]), OperandTf32<false>(T[2 * pair + 1])};
#pragma unroll
    for (int n = 2 * pair; n < 4; ++n) {  // D_1 is lower triangular
      std::uint32_t b[4];
      ptx::ldmatrix_x4(b, at(D1, 8 * n, 4 * pair + matrix));
#pragma unroll
      for (int k = 0; k < 2; ++k) ptx::mma_m16n8k8_tf32(x[n], a[k].hi, {b[2 * k], b[2 * k + 1]});
    }
  }
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float4 rows[2];
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const float(&from)[4] = x[2 * half + n];
      rows[n] = make_float4(-from[0], -from[1], -from[2], -from[3]);
      transpose(rows[n].x, rows[n].y);
      transpose(rows[n].z, rows[n].w);
    }
    store_tile(X10, half, J, rows);
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
