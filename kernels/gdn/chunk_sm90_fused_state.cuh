// gdn.chunk_sm90_fused: 64 V rows of the state through the chunks of a sequence, by one of two warpgroups side by side. As
// run_state (chunk_sm90_warpgroup.cuh), but in an order that needs fewer registers: S k^T and S q^T together, so that S as
// an operand is not kept past them. What the tensor core waits for here it has from the other warpgroup.
#pragma once
#include "kernels/gdn/chunk_sm90_warpgroup.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kFusedD = 128;  // K and V
inline constexpr int kPlaces = 3;    // of chunks in shared memory

// Factors of a chunk in shared memory, as Factors90. Operand b takes all 64 rows of a tile: those of P1's without elements
// stand before it as zeros. X's tiles have rows 32 .. 63 first, so that the same zeros follow D1, and a X^T has its columns
// 32 .. 63 first.
struct alignas(1024) FusedFactors {
  float X10[kHalf * kHalf], D0[kHalf * kHalf], P0[kC * kHalf], D1[kHalf * kHalf], zero[kHalf * kHalf], P1[kHalf * kHalf];
};
template <class Io>
using FusedChunk = ChunkAt<Io, kFusedD, FusedFactors>;

// x *= factor of the token, scale of the row.
__device__ inline void scale_rows(Rows64& x, const float (&factors)[kC], const float (&scale)[2], int t) {
#pragma unroll
  for (int i = 0; i < kC / 8; ++i) {
    const float2 f = *reinterpret_cast<const float2*>(&factors[8 * i + 2 * t]);
#pragma unroll
    for (int e = 0; e < 4; ++e) x[i][e] *= (e % 2 ? f.y : f.x) * scale[e / 2];
  }
}

// r = kTf32Up beta (v - exp(b) r), from S k^T of scaled rows.
template <class Io>
__device__ void resid(Rows64& r, const Io (&from)[kC * 64], const Vectors90& vectors, const RowScale& scale, int w,
                      int lane) {
  const int t = lane % 4, matrix = lane / 8;
  const std::uint32_t at = columns_at(from, (matrix >> 1) * 8 + lane % 8, w, matrix & 1);
#pragma unroll
  for (int j = 0; j < kC / 16; ++j) {
    std::uint32_t v[4];  // of two n-blocks of 8 tokens: V rows 0 .. 7 and 8 .. 15 of each
    ptx::ldmatrix_x4_trans(v, at + 128 * 16 * j);
#pragma unroll
    for (int n = 0; n < 2; ++n) {
      const int token = 16 * j + 8 * n + 2 * t;
      const float2 beta = *reinterpret_cast<const float2*>(&vectors.beta[token]),
                   decay = *reinterpret_cast<const float2*>(&vectors.decay_in[token]);
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float2 v2 = unpack2<Io>(v[2 * n + half]);
        float* r2 = &r[2 * j + n][2 * half];
        r2[0] = beta.x * fmaf(-(decay.x * scale.up[half]), r2[0], v2.x);
        r2[1] = beta.y * fmaf(-(decay.y * scale.up[half]), r2[1], v2.y);
      }
    }
  }
}

// at(turn, index) is where it finds chunk `index`, whose turn that is; find(work) finds the block's work again,
// which is not kept in registers through the loop. No branch and no wait but wgmma's stands
// between a product's start and its end: ptxas would wait after every one.
template <class Io, bool kTaps, class At, class Find>
__device__ void run_state_beside(const Params& p, const Maps90& maps, const Work& work, int column, int barrier, At at,
                                 Find find) {
  static_assert(!std::is_same_v<Io, __half>);  // scaled rows would not fit the registers
  constexpr int kD = kFusedD;
  constexpr std::uint64_t kQ = sizeof(Keys90<Io, kD>::k) / 16;
  constexpr std::uint64_t kD1 = offsetof(FusedFactors, D1) / 16, kP0 = offsetof(FusedFactors, P0) / 16,
                          kP1 = offsetof(FusedFactors, zero) / 16;
  const Args& a = p.args;
  const int thread = ptx::thread_id();
  const int lane = thread % 32, w = thread / 32 % 4, own = column + 16 * w;  // own: the warp's V rows
  const struct { int group, t; } l{lane / 4, lane % 4};
  const auto matrix = [&](const Work& of) {
    return of.slot.first + (of.h * kD + own) * kD;
  };  // of the state, its first element
  State90<Io, kD> state;
  if (work.slot.read) {
    if (a.state == DType::f32)
      load_state(static_cast<const float*>(a.initial_state) + matrix(work), state.S, l.group, l.t);
    else
      load_state(static_cast<const __nv_bfloat16*>(a.initial_state) + matrix(work), state.S, l.group, l.t);
  }
  const std::int64_t tap_block = kTaps && a.tap_S != nullptr ? chunks_before(p, work.n) : 0;
  const bool elected = thread % kGroup == 0;
  const int chunks = work.chunks, full = static_cast<int>((work.end - work.begin) / kC);
  const auto send = [&](int index, const Io(&o)[kC * 64]) {
    ptx::tensor_store(maps.o, static_cast<int>(work.begin) + index * kC, static_cast<int>(work.h), column, o);
  };
  Turn<kPlaces> turn, last;
  state.make_operand();
  for (int index = 0; index < chunks; ++index) {
    const FusedChunk<Io> chunk = at(turn, index);
    const Tiles90 tiles(chunk);
    const Vectors90& vectors = chunk.vectors;
    if constexpr (kTaps)
      if (a.tap_S != nullptr)
        store_state(a.tap_S + (((tap_block + index) * a.HV + work.h) * kD + own) * kD, state.S, l.group, l.t);
    chunk.full.wait_asleep(chunk.parity);
    Rows64 r, o;
    ptx::wgmma_pin(r);
    ptx::wgmma_pin(o);
    ptx::wgmma_fence();
    multiply_state<Io, kD>(r, state.s, tiles.keys);
    multiply_state<Io, kD>(o, state.s, tiles.keys + kQ);
    ptx::wgmma_wait<0>();
    ptx::wgmma_pin(r);
    ptx::wgmma_pin(o);
    if (elected && index > 0) {
      ptx::bulk_store_wait();
      at(last, index - 1).done.arrive();  // o of the chunk before this one has left shared memory
    }
    const float whole = vectors.decay_in[kC - 1];
    if (whole == 0.0f) {
      forget<kC / 8>(r, vectors.decay_in, l.t);
      forget<kC / 8>(o, vectors.decay_in, l.t);
    }
    resid<Io>(r, chunk.v, vectors, state.scale, w, lane);

    Rows64 v_new;  // tokens 32 .. 63, then 0 .. 31
    ptx::wgmma_pin(r);
    ptx::wgmma_pin(v_new);
    ptx::wgmma_fence();
    multiply_triangle(v_new, r, tiles.factors, tiles.factors + kD1, false);
    scale_rows(o, vectors.decay_read, state.scale.up, l.t);
    decay_state<Io>(state.S, r, whole);  // of r nothing is used
    ptx::wgmma_wait<0>();                // v_new
    ptx::wgmma_pin(v_new);

    std::uint32_t u[kC / 16][4], lo[4];
#pragma unroll
    for (int j = 0; j < kC / 16; ++j) {
      float decayed[2][4];
#pragma unroll
      for (int n = 0; n < 2; ++n) {
        const float2 decay = *reinterpret_cast<const float2*>(&vectors.decay_out[16 * j + 8 * n + 2 * l.t]);
        float(&x)[4] = v_new[(2 * j + n) ^ kHalf / 8];
#pragma unroll
        for (int e = 0; e < 4; ++e) {
          decayed[n][e] = x[e] * (e % 2 ? decay.y : decay.x);
          x[e] *= kTf32Up;
        }
      }
      Warp<Io>::to_operand(decayed[0], decayed[1], state.scale.down, u[j], lo);
    }
    if constexpr (kTaps)
      if (a.tap_v_new != nullptr) {
        Rows64 in_order;
#pragma unroll
        for (int e = 0; e < 4 * (kC / 8); ++e) in_order[e / 4][e % 4] = v_new[e / 4 ^ kHalf / 8][e % 4];
        tap_rows(
            in_order, [](float x) { return __uint_as_float(__float_as_uint(x) & ~0x1fffu); },
            a.tap_v_new + ((work.begin + std::int64_t{index} * kC) * a.HV + work.h) * kD + own, a.HV * kD, work.valid(index),
            l.group, l.t);
      }
    ptx::wgmma_pin(state.S);
    ptx::wgmma_pin(v_new);
    ptx::wgmma_pin(o);
    ptx::wgmma_fence();
    add_to_state<Io, kD>(state.S, u, tiles.keys + (std::uint64_t{(kTileBytes >> 4) - 1} << 16));  // wgmma_columns of k
    multiply_triangle<true>(o, v_new, tiles.factors + kP0, tiles.factors + kP1, true);
    ptx::wgmma_wait<1>();  // S
    ptx::wgmma_pin(state.S);
    state.make_operand();
    ptx::wgmma_wait<0>();  // o
    ptx::wgmma_pin(o);
    __syncwarp();  // the warp has read the chunk
    if (lane == 0) chunk.read.arrive();
    write_o<Io>(o, chunk.v, w, lane);
    ptx::fence_async_shared();
    ptx::barrier_sync<kGroup>(barrier);  // o is there
    if (elected && index < full) send(index, chunk.v);
    last = turn;
    turn.next();
  }
  Work last_work;
  find(last_work);
  if (full < chunks)  // the rest of the box belongs to others
    store_rows(at(last, full).v, w,
               static_cast<Io*>(a.o) + ((last_work.begin + std::int64_t{full} * kC) * a.HV + last_work.h) * kD + own,
               a.HV * kD, last_work.valid(full), lane);
  if (elected) ptx::bulk_store_wait();
  if (!last_work.slot.write) return;
  if (a.state == DType::f32)
    store_state(static_cast<float*>(a.final_state) + matrix(last_work), state.S, l.group, l.t);
  else
    store_state(static_cast<__nv_bfloat16*>(a.final_state) + matrix(last_work), state.S, l.group, l.t);
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
