// gdn.chunk_sm90: a state warpgroup, 64 V rows through the chunks (roles and barriers: chunk_sm90.cuh; equations:
// chunk_sm80_scan.cuh). A warp keeps its [16, K] of S, and resid, v_new and o as [16, 64], in registers; each product's
// result is, register for register, the next one's operand a, and operand b is what the team left in shared memory.
#pragma once
#include "kernels/gdn/chunk_sm90.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

// d += a X^T for X in shared memory and a [64, 64] in tf32; committed.
__device__ inline void multiply_square(Rows64& d, const std::uint32_t (&a)[kC / 8][4], const Square& X) {
#pragma unroll
  for (int j = 0; j < 2; ++j) {
    const std::uint64_t b = ptx::wgmma_rows(shared_address(X.at[j]));
#pragma unroll
    for (int step = 0; step < 4; ++step) ptx::wgmma_m64n64k8_tf32(d, a[4 * j + step], b + 2 * step);
  }
  ptx::wgmma_commit();
}

__device__ inline void to_tf32(const Rows64& x, std::uint32_t (&a)[kC / 8][4]) {
#pragma unroll
  for (int i = 0; i < kC / 8; ++i) {
    const OperandTf32<false> operand(x[i]);
#pragma unroll
    for (int r = 0; r < 4; ++r) a[i][r] = operand.hi[r];
  }
}

template <class Io, int kD>
__device__ void multiply_state(Rows64& d, const std::uint32_t (&a)[kD / 16][4], const Io (&x)[kD / 64][kC * 64]) {
#pragma unroll
  for (int c = 0; c < kD / 64; ++c) {
    const std::uint64_t b = ptx::wgmma_rows(shared_address(x[c]));
#pragma unroll
    for (int step = 0; step < 4; ++step) ptx::wgmma_m64n64k16<Io>(d, a[4 * c + step], b + 2 * step);
  }
  ptx::wgmma_commit();
}

// S += u k, for u [64, 64] as operand a in io; committed.
template <class Io, int kD>
__device__ void add_to_state(float (&S)[kD / 8][4], const std::uint32_t (&u)[kC / 16][4], const Io (&k)[kD / 64][kC * 64]) {
  const std::uint64_t b = ptx::wgmma_columns(shared_address(k), kTileBytes);
#pragma unroll
  for (int j = 0; j < kC / 16; ++j) {
    if constexpr (kD == 128)
      ptx::wgmma_m64n128k16_columns<Io>(S, u[j], b + 128 * j);
    else
      ptx::wgmma_m64n64k16_columns<Io>(S, u[j], b + 128 * j);
  }
  ptx::wgmma_commit();
}

template <class Io, class Shape>
__device__ void do_chunk(const Params& p, const Work& work, std::int64_t chunk, int column, Smem90<Io, Shape>& smem,
                         Columns16& v, float (&S)[Shape::D / 8][4]) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Warp<Io> l;
  const Keys<Io, kD>& stage = smem.stages[chunk % kStages];
  const Tokens& tokens = smem.tokens[chunk % kStages];
  const Pair& pair = smem.pairs[chunk % kPairs];
  const int valid = work.valid(chunk);

  float largest[2] = {0, 0};
  Warp<Io>::largest_of(S, largest);
  const RowScale scale = Warp<Io>::row_scale(largest);
  std::uint32_t s[kD / 16][4], lo[4];
#pragma unroll
  for (int c = 0; c < kD / 16; ++c) Warp<Io>::to_operand(S[2 * c], S[2 * c + 1], scale.down, s[c], lo);
  Rows64 r = {}, o = {};
  smem.ready[chunk % kPairs].wait(chunk / kPairs % 2);
  ptx::wgmma_pin(r);
  ptx::wgmma_pin(o);
  ptx::wgmma_fence();
  multiply_state<Io, kD>(r, s, stage.k);
  multiply_state<Io, kD>(o, s, stage.q);
  ptx::cp_async_wait<1>();
  __syncwarp();  // the warp's v is there
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(r);
  ptx::wgmma_pin(o);
  residuals<Io>(r, o, scale, v.address(l.lane), tokens.beta, tokens.decay_in, l.t);

  std::uint32_t operand[kC / 8][4];
  to_tf32(r, operand);
  Rows64 v_new = {};
  ptx::wgmma_pin(v_new);
  ptx::wgmma_fence();
  multiply_square(v_new, operand, pair.Ainv);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(v_new);

  to_tf32(v_new, operand);
  ptx::wgmma_pin(o);
  ptx::wgmma_fence();
  multiply_square(o, operand, pair.P);
  const std::int64_t first = work.begin + chunk * kC, place = (first * a.HV + work.h) * kD + column;
  if (a.tap_v_new != nullptr) tap_rows(v_new, true, a.tap_v_new + place, a.HV * kD, valid, l.group, l.t);
  scale_tokens(v_new, tokens.decay_out, l.t);
  const RowScale shared_scale = decay_state<Io>(S, v_new, tokens.decay_in[kC - 1]);
  std::uint32_t u[kC / 16][4];
#pragma unroll
  for (int j = 0; j < kC / 16; ++j) Warp<Io>::to_operand(v_new[2 * j], v_new[2 * j + 1], shared_scale.down, u[j], lo);
  ptx::wgmma_pin(S);
  ptx::wgmma_fence();
  add_to_state<Io, kD>(S, u, stage.k);
  ptx::wgmma_wait<1>();  // o
  ptx::wgmma_pin(o);
  __syncwarp();  // the warp has read its v
  store_o<Io>(o, a.scale, v, static_cast<Io*>(a.o) + place, a.HV * kD, valid);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(S);
  unscale<Io>(S, shared_scale);
  __syncwarp();  // the warp has read the chunk
  if (l.lane == 0) {
    smem.used_pair[chunk % kPairs].arrive();
    smem.used_stage[chunk % kStages].arrive();
  }
}

template <class Io, class Shape>
__device__ void run_state(const Params& p, const Work& work, Smem90<Io, Shape>& smem, int group) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Warp<Io> l;
  const int warp = 4 * group + threadIdx.x / 32 % 4, column = work.column + 16 * warp;
  const std::int64_t matrix = work.slot.first + (work.h * kD + column) * kD;
  const auto load_v = [&](std::int64_t chunk) {
    if (chunk < work.chunks) {
      const std::int64_t first = work.begin + chunk * kC;
      load_columns(smem.v[chunk % 2][warp], static_cast<const Io*>(a.v) + (first * a.HV + work.h) * kD + column, a.HV * kD,
                   work.valid(chunk), l.lane);
    }
    ptx::cp_async_commit();
  };

  load_v(0);
  float S[kD / 8][4] = {};
  if (work.slot.read) {
    if (a.state == DType::f32)
      load_state(static_cast<const float*>(a.initial_state) + matrix, S, l.group, l.t);
    else
      load_state(static_cast<const __nv_bfloat16*>(a.initial_state) + matrix, S, l.group, l.t);
  }
  const std::int64_t tap_block = a.tap_S != nullptr ? chunks_before(p, work.n) : 0;
  for (std::int64_t chunk = 0; chunk < work.chunks; ++chunk) {
    __syncwarp();  // the o that stood in the other half is written
    load_v(chunk + 1);
    if (a.tap_S != nullptr)
      store_state(a.tap_S + (((tap_block + chunk) * a.HV + work.h) * kD + column) * kD, S, l.group, l.t);
    do_chunk<Io, Shape>(p, work, chunk, column, smem, smem.v[chunk % 2][warp], S);
  }
  if (!work.slot.write) return;
  if (a.state == DType::f32)
    store_state(static_cast<float*>(a.final_state) + matrix, S, l.group, l.t);
  else
    store_state(static_cast<__nv_bfloat16*>(a.final_state) + matrix, S, l.group, l.t);
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
