// gdn.chunk_sm90: a team, four warps that prepare chunks (roles and barriers: chunk_sm90.cuh). Warp w owns rows 16 w .. of
// k k^T and q k^T, then block column w of (I + A)^-1 (chunk_sm80_inverse.cuh).
#pragma once
#include "kernels/gdn/chunk_sm90.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

// k, q and gates of a chunk on their way; the gates are written by the team's last warp.
template <class Io, class Shape>
__device__ void load_keys(const Params& p, const Work& work, std::int64_t chunk, Smem90<Io, Shape>& smem) {
  Keys<Io, Shape::D>& stage = smem.stages[chunk % kStages];
  Tokens& tokens = smem.tokens[chunk % kStages];
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
  if (threadIdx.x / 32 % 4 == 3) make_gates(a, first, valid, work.h, tokens.gates, tokens);
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

// d = x k^T of 64 rows each; committed, not waited for.
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

template <class Io, class Shape>
__device__ void run_team(const Params& p, const Work& work, Smem90<Io, Shape>& smem, int team) {
  constexpr int kD = Shape::D;
  const int w = threadIdx.x / 32 % 4, barrier = 1 + team;
  Factors& factors = smem.factors[team];
  if (team < work.chunks) load_keys<Io, Shape>(p, work, team, smem);

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

    float kk[kC / 8][4] = {}, qk[kC / 8][4] = {};
    ptx::wgmma_pin(kk);
    ptx::wgmma_pin(qk);
    ptx::wgmma_fence();
    multiply_tiles<Io, kD>(stage.k, stage.k, kk);
    multiply_tiles<Io, kD>(stage.q, stage.k, qk);
    smem.used_pair[chunk % kPairs].wait(chunk / kPairs % 2 ^ 1);
    ptx::wgmma_wait<1>();
    ptx::wgmma_pin(kk);
    store_A(reinterpret_cast<const BlockRow&>(kk), gates, w, factors);
    __syncwarp();  // this warp's rows of A are there
    invert_diagonal(factors, w);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(qk);
    store_P(reinterpret_cast<const BlockRow&>(qk), gates, w, false, pair.P);

    // The next chunk's loads start as early as their stage is free.
    const std::int64_t next = chunk + Shape::teams;
    ptx::Mbarrier& free = smem.used_stage[next % kStages];
    const std::uint32_t parity = next / kStages % 2 ^ 1;
    const bool early = next < work.chunks && __all_sync(kAll, free.ended(parity));
    if (early) load_keys<Io, Shape>(p, work, next, smem);

    ptx::barrier_sync<kGroup>(barrier);  // A and the inverses of its diagonal blocks are there
    solve_column(factors, w, false, pair.Ainv, tap_of(p, work.n, chunk, work.h));
    ptx::fence_async_shared();
    smem.ready[chunk % kPairs].arrive();
    if (next < work.chunks && !early) {
      free.wait(parity);
      load_keys<Io, Shape>(p, work, next, smem);
    }
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
