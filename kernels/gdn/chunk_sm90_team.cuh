// gdn.chunk_sm90: a team, four warps that prepare chunks (roles and barriers: chunk_sm90.cuh). Warp w owns rows 16 w .. of
// k k^T and q k^T, then block column w of (I + A)^-1 (chunk_sm80_inverse.cuh).
#pragma once
#include "kernels/gdn/chunk_sm90.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

// k and q of a chunk on their way.
template <class Io, class Shape>
__device__ void load_keys(const Params& p, const Work& work, std::int64_t chunk, Smem90<Io, Shape>& smem) {
  Keys<Io, Shape::D>& stage = smem.stages[chunk % kStages];
  const Args& a = p.args;
  const std::int64_t first = work.begin + chunk * kC, at = (first * a.HK + work.hk) * Shape::D;
  const int valid = work.valid(chunk);
#pragma unroll
  for (int c = 0; c < Shape::D / 64; ++c) {
    Tile<64>::load<kC, kGroup>(shared_address(stage.k[c]), static_cast<const Io*>(a.k) + at + 64 * c, a.HK * Shape::D,
                               valid);
    Tile<64>::load<kC, kGroup>(shared_address(stage.q[c]), static_cast<const Io*>(a.q) + at + 64 * c, a.HK * Shape::D,
                               valid);
  }
  ptx::cp_async_commit();
}
// Its gates, by one warp.
template <class Io, class Shape>
__device__ void load_gates(const Params& p, const Work& work, std::int64_t chunk, int team, Smem90<Io, Shape>& smem) {
  Tokens& tokens = smem.tokens[chunk % kStages];
  make_gates(p.args, work.begin + chunk * kC, work.valid(chunk), work.h, tokens.gates, tokens);
  __syncwarp();  // the gates are there
  make_block_decays(tokens.gates, smem.decays[team]);
}

// Block row w of A = beta exp(b_i - b_j) k k^T below the diagonal to factors, or of P = exp(b_i - b_j) q k^T to its square.
template <bool kP>
__device__ void store_row(const BlockRow& products, const Gates& gates, const BlockDecays& decays, int w, Factors& factors,
                          Square& P) {
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
          decay[e] = past < (kP ? 1 : 0) ? beta[e / 2] * decay[e] : 0.0f;
        }
      } else {
        const float2 m = *reinterpret_cast<const float2*>(&to_m[column]);
#pragma unroll
        for (int e = 0; e < 4; ++e) decay[e] = from_m[e / 2] * (e % 2 ? m.y : m.x);
      }
#pragma unroll
      for (int e = 0; e < 4; ++e) x[e / 2][2 * half + e % 2] = decay[e] * products[j][half][e];
      if constexpr (!kP) {
        *reinterpret_cast<float2*>(&factors.A[row][column]) = make_float2(x[0][2 * half], x[0][2 * half + 1]);
        *reinterpret_cast<float2*>(&factors.A[row + 8][column]) = make_float2(x[1][2 * half], x[1][2 * half + 1]);
      }
    }
    if constexpr (kP) {
      float4 rows[2] = {make_float4(x[0][0], x[0][1], x[0][2], x[0][3]), make_float4(x[1][0], x[1][1], x[1][2], x[1][3])};
      store_block(P, w, j, rows, false);
    }
  }
}

// Rows of k and q to x / sqrt(sum x^2 + 1e-6) in f32, rounded to io, in place: eight lanes a row.
template <class Io, int kD>
__device__ void normalise_rows(Io (&tiles)[kD / 64][kC * 64]) {
  const int lane = threadIdx.x % 8;
  for (int row = threadIdx.x % kGroup / 8; row < kC; row += kGroup / 8) {
    uint4 blocks[kD / 64];
#pragma unroll
    for (int c = 0; c < kD / 64; ++c)
      blocks[c] = *reinterpret_cast<const uint4*>(reinterpret_cast<const char*>(tiles[c]) + Tile<64>::offset(row, lane));
    const RowNorm norm = row_norm<Precise>([&](float down) {
      float sum = 0;
#pragma unroll
      for (int i = 0; i < 4 * (kD / 64); ++i) {
        const float2 x = unpack2<Io>((&blocks[i / 4].x)[i % 4]);
        sum = fmaf(x.x * down, x.x * down, sum);
        sum = fmaf(x.y * down, x.y * down, sum);
      }
#pragma unroll
      for (int mask = 4; mask > 0; mask /= 2) sum += __shfl_xor_sync(kAll, sum, mask);
      return sum;
    });
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 x = unpack2<Io>((&blocks[c].x)[i]);
        (&blocks[c].x)[i] = pack2<Io>(x.x * norm.down * norm.r, x.y * norm.down * norm.r);
      }
      *reinterpret_cast<uint4*>(reinterpret_cast<char*>(tiles[c]) + Tile<64>::offset(row, lane)) = blocks[c];
    }
  }
}

// d = x k^T of 64 rows each; committed, not waited for. d is zero.
template <class Io, int kD>
__device__ void multiply_tiles(const Io (&x)[kD / 64][kC * 64], const Io (&k)[kD / 64][kC * 64], float (&d)[kC / 8][4]) {
#pragma unroll
  for (int c = 0; c < kD / 64; ++c) {
    const std::uint64_t a = ptx::wgmma_rows(shared_address(x[c])), b = ptx::wgmma_rows(shared_address(k[c]));
#pragma unroll
    for (int step = 0; step < 4; ++step) ptx::wgmma_m64n64k16_shared<Io>(d, a + 2 * step, b + 2 * step);
  }
  ptx::wgmma_commit();
}
template <class Io, int kD>
__device__ void start_product(const Io (&x)[kD / 64][kC * 64], const Io (&k)[kD / 64][kC * 64], float (&d)[kC / 8][4]) {
#pragma unroll
  for (int e = 0; e < kC / 2; ++e) d[e / 4][e % 4] = 0;
  ptx::wgmma_pin(d);
  ptx::wgmma_fence();
  multiply_tiles<Io, kD>(x, k, d);
}

template <class Io, class Shape>
__device__ void run_team(const Params& p, const Work& work, Smem90<Io, Shape>& smem, int team) {
  constexpr int kD = Shape::D;
  const int w = threadIdx.x / 32 % 4, barrier = 1 + team;
  Factors& factors = smem.factors[team];
  if (team < work.chunks) {
    load_keys<Io, Shape>(p, work, team, smem);
    if (w == 3) load_gates<Io, Shape>(p, work, team, team, smem);
  }
  for (std::int64_t chunk = team; chunk < work.chunks; chunk += Shape::teams) {
    Keys<Io, kD>& stage = smem.stages[chunk % kStages];
    const Gates& gates = smem.tokens[chunk % kStages].gates;
    Pair& pair = smem.pairs[chunk % kPairs];
    ptx::cp_async_wait<0>();
    if (p.args.l2norm) {
      ptx::barrier_sync<kGroup>(barrier);  // all rows are there
      normalise_rows<Io, kD>(stage.k);
      normalise_rows<Io, kD>(stage.q);
    }
    ptx::fence_async_shared();
    ptx::barrier_sync<kGroup>(barrier);  // k, q and gates are there; the last chunk's factors have been read

    float d[kC / 8][4];
    start_product<Io, kD>(stage.k, stage.k, d);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d);
    store_row<false>(reinterpret_cast<const BlockRow&>(d), gates, smem.decays[team], w, factors, pair.P);
    start_product<Io, kD>(stage.q, stage.k, d);
    __syncwarp();  // this warp's rows of A are there
    invert_diagonal(factors, w);
    smem.used_pair[chunk % kPairs].wait(chunk / kPairs % 2 ^ 1);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d);
    store_row<true>(reinterpret_cast<const BlockRow&>(d), gates, smem.decays[team], w, factors, pair.P);

    // The next chunk's loads start as early as their stage is free. Its gates are for the warp with no block column to
    // solve.
    const std::int64_t next = chunk + Shape::teams;
    ptx::Mbarrier& free = smem.used_stage[next % kStages];
    const std::uint32_t parity = next / kStages % 2 ^ 1;
    const bool early = next < work.chunks && __all_sync(kAll, free.ended(parity));
    if (early) load_keys<Io, Shape>(p, work, next, smem);

    ptx::barrier_sync<kGroup>(barrier);  // A and the inverses of its diagonal blocks are there
    solve_column(factors, w, barrier, false, pair.Ainv, tap_of(p, work.n, chunk, work.h));
    ptx::fence_async_shared();
    smem.ready[chunk % kPairs].arrive();
    if (next < work.chunks && !early) {
      free.wait(parity);
      load_keys<Io, Shape>(p, work, next, smem);
    }
    if (next < work.chunks && w == 3) load_gates<Io, Shape>(p, work, next, team, smem);
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
