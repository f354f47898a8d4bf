// gdn.chunk_sm90, first kernel: Record90 of every chunk (equations: chunk_sm90.cuh).
// grid: as many blocks as the device holds, each takes every gridDim.x-th item, slot * HK + key head, and loads the next
// one's k and q as soon as it has multiplied its own
// block: two teams of 4 warps; warp w of a team owns rows 16 w .. 16 w + 15
//   team 0   k k^T, A and the inverses of its diagonal halves, of one value head of the group after the other
//   team 1   the gates, then q k^T and P of one value head after the other
// shared: PrepareSmem90; q and k are normalised there first when asked.
#pragma once
#include "kernels/gdn/chunk_sm90.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

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

// 16 x 16 blocks of A in f32; rows of a fragment fall into different banks.
using Block = float[16][16 + 4];
struct HalfFactors {
  Block diagonal[kBlocks];  // A_II, then the inverse of I + A_II
  Block below[2];           // A_10 and A_32
};

template <class Io, int kD>
struct alignas(1024) PrepareSmem90 {
  Io k[kC * kD], q[kC * kD];
  Factors90 out;
  HalfFactors factors;
  Gates gates[kBlocks];  // of up to four value heads
  BlockDecays decays[kBlocks];
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

// Block row w of sign exp(b_i - b_j) x k^T, kP: on and below the diagonal; else below it, times beta_i. store(j, rows) takes
// block j as for store_tile.
template <bool kP, class Store>
__device__ void decay_row(const BlockRow& products, const Gates& gates, const BlockDecays& decays, int w, Store store) {
  const Lane l;
  const int row = 16 * w + l.group;
  const float beta[2] = {kP ? 1.0f : gates.beta[row], kP ? 1.0f : gates.beta[row + 8]};
  const float from_m[2] = {beta[0] * decays.row[row], beta[1] * decays.row[row + 8]};
  const float* to_m = decays.column[w == 0 ? 0 : w - 1];
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    if (j > w) break;
    float x[2][4];  // [row block][element of the row]
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = 16 * j + 8 * half + 2 * l.t;
      float decay[4];
      if (j == w) {
        Decays(gates, row).of(gates, column, decay);
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          const int past = column + e % 2 - (row + 8 * (e / 2));  // columns past the diagonal
          x[e / 2][2 * half + e % 2] = past < (kP ? 1 : 0) ? beta[e / 2] * decay[e] * products[j][half][e] : 0.0f;
        }
      } else {
        const float2 m = *reinterpret_cast<const float2*>(&to_m[column]);
#pragma unroll
        for (int e = 0; e < 4; ++e) x[e / 2][2 * half + e % 2] = from_m[e / 2] * (e % 2 ? m.y : m.x) * products[j][half][e];
      }
    }
    const float4 rows[2] = {make_float4(x[0][0], x[0][1], x[0][2], x[0][3]),
                            make_float4(x[1][0], x[1][1], x[1][2], x[1][3])};
    store(j, rows);
  }
}

// A team: block row w of A from k k^T, then the inverses of its diagonal halves. Warps 2 h and 2 h + 1 make half h:
// X_10 = -X_11 A_10 X_00 by products in 3 x tf32 (22 bits), on X^T, so that a product's result is the next one's operand a.
__device__ inline void make_solver(const BlockRow& kk, const Gates& gates, const BlockDecays& decays, int w,
                                   HalfFactors& factors, Factors90& out) {
  const Lane l;
  const int half = w / 2;
  decay_row<false>(kk, gates, decays, w, [&](int j, const float4(&rows)[2]) {
    if (j == w) return store_block(factors.diagonal[w], rows);
    if (j / 2 == half) return store_block(factors.below[half], rows);
    store_tile(out.A10, w - 2, j, rows);
  });
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
    for (int i = 0; i < 16; ++i) out.D[half][place(16 * (w % 2) + i, 16 * (w % 2) + column)] = round_tf32(x[i]);
  }
  ptx::barrier_sync<64>(1 + half);  // both inverses and A_10 of this half are there
  if (w % 2 == 1) return;
  Transposed X00, product[1] = {}, X10[1] = {};
#pragma unroll
  for (int k = 0; k < 2; ++k)
#pragma unroll
    for (int e = 0; e < 4; ++e) X00[k][e] = factors.diagonal[w][8 * k + 2 * l.t + e % 2][l.group + 8 * (e / 2)];
  multiply_add<1>(product, {&X00}, {factors.below[half][0]}, {16 + 4});
  multiply_add<1>(X10, {&product[0]}, {factors.diagonal[w + 1][0]}, {16 + 4});
  negate(X10[0]);
  float4 rows[2];
#pragma unroll
  for (int n = 0; n < 2; ++n) {
    rows[n] = make_float4(X10[0][n][0], X10[0][n][1], X10[0][n][2], X10[0][n][3]);
    transpose(rows[n].x, rows[n].y);
    transpose(rows[n].z, rows[n].w);
  }
  store_tile(out.D[half], 1, 0, rows);
}

// For debugging: (I + A)^-1 as D and A_10 make it, X_10 = -D_1 A_10 D_0.
__device__ inline void tap_inverse(const Factors90& out, float* tap) {
  for (int at = threadIdx.x; at < kC * kC; at += kPrepareThreads) {
    const int i = at / kC, j = at % kC;
    float x = 0;
    if (i / kHalf == j / kHalf) {
      x = out.D[i / kHalf][place(i % kHalf, j % kHalf)];
    } else if (i >= kHalf) {
      for (int b = 0; b < kHalf; ++b) {
        float sum = 0;
        for (int a = 0; a < kHalf; ++a) sum = fmaf(-out.A10[place(b, a)], out.D[0][place(a, j)], sum);
        x = fmaf(out.D[1][place(i - kHalf, b)], sum, x);
      }
    }
    tap[at] = x;
  }
}

template <class Io, int kD>
__global__ void __launch_bounds__(kPrepareThreads, 3) prepare(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<PrepareSmem90<Io, kD>*>(shared);
  const Args& a = p.args;
  const int team = threadIdx.x / kTeamThreads, w = threadIdx.x / 32 % kBlocks;
  const unsigned HK = static_cast<unsigned>(a.HK), items = static_cast<unsigned>(p.slots) * HK;
  const std::int64_t stride = a.HK * kD, group = a.HV / a.HK;
  const std::uint32_t k = shared_address(smem.k), q = shared_address(smem.q);
  const auto first_of = [&](const Chunk& at, unsigned item) { return (at.begin * a.HK + item % HK) * kD; };
  const auto load = [&](const Chunk& at, unsigned item) {
    if (at.rows > 0) {
      const std::int64_t first = first_of(at, item);
      Tile<kD>::template load<kC, kPrepareThreads>(k, static_cast<const Io*>(a.k) + first, stride, at.rows);
      Tile<kD>::template load<kC, kPrepareThreads>(q, static_cast<const Io*>(a.q) + first, stride, at.rows);
    }
    ptx::cp_async_commit();
  };
  RawGates raw = {};  // of the item's first heads, one a warp of team 1
  const auto load_raw = [&](const Chunk& at, unsigned item, std::int64_t head) {
    if (team == 1 && head + w < group && at.rows > 0) raw = load_gates(a, at.begin, at.rows, item % HK * group + head + w);
  };

  auto* zero = reinterpret_cast<uint4*>(&smem.out);  // above the diagonals nothing is ever written
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(smem.out) / 16); i += kPrepareThreads) zero[i] = uint4{};
  unsigned item = blockIdx.x;
  Chunk at = find_chunk(p, item / HK);
  load(at, item);
  load_raw(at, item, 0);
  while (true) {
    const unsigned next_item = item + gridDim.x;
    const Chunk next = next_item < items ? find_chunk(p, next_item / HK) : Chunk{};
    const std::int64_t hk = item % HK;
    Record90* records = records_of<Record90>(p) + item / HK * a.HV + hk * group;  // of the group's value heads
    const auto make_heads = [&](std::int64_t head) {                              // gates of the heads from this one on
      if (team == 0 || head + w >= group) return;
      make_gates(raw, smem.gates[w], records[head + w]);
      __syncwarp();  // the gates are there
      make_block_decays(smem.gates[w], smem.decays[w]);
    };
    if (at.rows > 0) make_heads(0);
    ptx::cp_async_wait<0>();
    if (threadIdx.x == 0) ptx::bulk_store_wait();
    __syncthreads();  // q, k and the first four heads' gates are there, the last item's factors have been read
    if (at.rows > 0 && p.k_unit != nullptr) {
      const std::int64_t first = first_of(at, item);
      normalise<Io, kD>(smem.k, static_cast<Io*>(p.k_unit) + first, stride, at.rows);
      normalise<Io, kD>(smem.q, static_cast<Io*>(p.q_unit) + first, stride, at.rows);
      __syncthreads();  // q and k are normalised
    }
    if (at.rows <= 0) load(next, next_item), load_raw(next, next_item, 0);

    for (std::int64_t head = 0; head < group && at.rows > 0; ++head) {
      const int one = static_cast<int>(head % kBlocks);
      if (head > 0) {
        if (threadIdx.x == 0) ptx::bulk_store_wait();
        if (one == 0) load_raw(at, item, head), make_heads(head);
        __syncthreads();  // the last head's factors have been read, the gates are there
      }
      BlockRow products;
      multiply_rows<Io, kD>(team == 0 ? k : q, k, w, products);
      if (head + 1 == group) {
        __syncthreads();  // q and k have been read
        load(next, next_item);
        load_raw(next, next_item, 0);
      }
      if (team == 0)
        make_solver(products, smem.gates[one], smem.decays[one], w, smem.factors, smem.out);
      else
        decay_row<true>(products, smem.gates[one], smem.decays[one], w, [&](int j, const float4(&rows)[2]) {
          if (j < 2)
            store_tile(smem.out.P0, w, j, rows);
          else
            store_tile(smem.out.P1, w - 2, j - 2, rows);
        });
      ptx::fence_async_shared();
      __syncthreads();  // the head's factors are there, its gates have been read
      float* tap = tap_of(p, at.n, at.index, hk * group + head);
      if (tap != nullptr) tap_inverse(smem.out, tap);
      if (threadIdx.x == 0) ptx::bulk_store(&records[head], &smem.out, sizeof(Factors90));
      if (tap != nullptr) __syncthreads();  // the tap has read the factors
    }
    if (next_item >= items) break;
    item = next_item;
    at = next;
  }
  if (threadIdx.x == 0) ptx::bulk_store_wait();
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
