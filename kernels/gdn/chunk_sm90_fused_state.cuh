// gdn.chunk_sm90_fused: 64 V rows of the state through the chunks of a sequence, by one of two warpgroups side by side. As
// run_state (chunk_sm90_warpgroup.cuh), but for S k^T and S q^T, which are one product, and behind S u k and o the next
// chunk's is under way before o is written.
#pragma once
#include "kernels/gdn/chunk_sm90_fused_factors.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

using Rows32 = float[kShort / 8][4];

// Where a warpgroup finds a chunk, as ChunkAt; its barriers: chunk_sm90_fused.cuh.
template <class Io>
struct ShortChunk {
  const FusedPlace<Io>& place;
  Io (&v)[kShort * 64];
  const float* k_norms;  // for taps: 1 / |k_i|, or null
  const ShortVectors& vectors;
  ptx::Mbarrier &made, &read, &done;
  std::uint32_t parity;
};

// As OperandTf32, uncut: the tensor core does that.
__device__ inline void cut_operand(const float (&x)[4], std::uint32_t (&operand)[4]) {
  constexpr int kElement[4] = {0, 2, 1, 3};
#pragma unroll
  for (int r = 0; r < 4; ++r) operand[r] = __float_as_uint(x[kElement[r]]);
}

// d += a X^T (add, else =) for a lower triangular X [32, 32] and a [64, 32] in tf32; committed. The tensor core cuts a.
__device__ inline void multiply_triangle(Rows32& d, const std::uint32_t (&a)[kShort / 8][4], std::uint64_t X, bool add) {
#pragma unroll
  for (int step = 0; step < kShort / 8; ++step) ptx::wgmma_m64n32k8_tf32(d, a[step], X + 2 * step, add || step > 0);
  ptx::wgmma_commit();
}

// at(turn) is where it finds the chunk of a turn. No branch stands around products that are under way from one chunk to the
// next: ptxas would wait after every one.
template <class Io, bool kTaps, class At>
__device__ void run_short_state(const Params& p, const Maps90& maps, const ShortWork& work, int column, int barrier, At at) {
  constexpr int kD = kFusedD;
  constexpr bool kScaled = std::is_same_v<Io, __half>;
  constexpr std::uint64_t kX = offsetof(FusedPlace<Io>, factors) / 16, kP = kX + offsetof(ShortFactors, P) / 16;
  const Args& a = p.args;
  const int thread = ptx::thread_id();
  const int lane = thread % 32, w = thread / 32 % 4, own = column + 16 * w;  // own: the warp's V rows
  const struct { int group, t; } l{lane / 4, lane % 4};
  const auto matrix = [&] { return work.slot.first + (work.h * kD + own) * kD; };  // of the state, its first element
  State90<Io, kD> state;
  if (work.slot.read) {
    if (a.state == DType::f32)
      load_state(static_cast<const float*>(a.initial_state) + matrix(), state.S, l.group, l.t);
    else
      load_state(static_cast<const __nv_bfloat16*>(a.initial_state) + matrix(), state.S, l.group, l.t);
  }
  const std::int64_t tap_block = kTaps && a.tap_S != nullptr ? chunks_before<kShort>(p, work.n) : 0;
  const bool elected = thread % kGroup == 0;
  const int chunks = work.chunks, begin = static_cast<int>(work.begin), h = static_cast<int>(work.h),
            full = static_cast<int>((work.end - work.begin) / kShort);

  Turn<kPlaces> turn, last;
  Rows64 read;  // S k^T, then S q^T
  auto& r = reinterpret_cast<Rows32&>(read[0]);
  auto& o = reinterpret_cast<Rows32&>(read[kShort / 8]);
  // Starts the product with the keys of a turn's chunk; past the last one with what its place held before.
  const auto read_state = [&](int index, const Turn<kPlaces>& of) {
    const ShortChunk<Io> chunk = at(of);
    const std::uint64_t keys = ptx::wgmma_rows(shared_address(&chunk.place));
    if (index < chunks) chunk.made.wait_asleep(chunk.parity);
    ptx::wgmma_pin(read);
    ptx::wgmma_fence();
    multiply_state<Io, kD>(read, state.s, keys);
  };

  state.make_operand();
  read_state(0, turn);
  for (int index = 0; index < chunks; ++index) {
    const ShortChunk<Io> chunk = at(turn);
    const std::uint64_t tiles = ptx::wgmma_rows(shared_address(&chunk.place));
    const ShortVectors& vectors = chunk.vectors;
    if constexpr (kTaps)
      if (a.tap_S != nullptr)
        store_state(a.tap_S + (((tap_block + index) * a.HV + work.h) * kD + own) * kD, state.S, l.group, l.t);
    const ResidInputs<kShort> inputs(chunk.v, vectors, w, lane);
    float2 decay_read[kShort / 8];
    load_pairs(vectors.decay_read, l.t, decay_read);
    const float whole = vectors.whole;
    ptx::wgmma_wait<0>();  // S k^T, S q^T
    ptx::wgmma_pin(read);
    if (elected && index > 0) {
      ptx::bulk_store_wait();
      at(last).done.arrive();  // o of the chunk before this one has left shared memory
    }
    if (whole == 0.0f) {
      forget<kShort / 8>(r, vectors.decay_in, l.t);
      forget<kShort / 8>(o, vectors.decay_in, l.t);
    }
    inputs.template resid<Io>(r, state.scale);

    Rows32 v_new, out;
    std::uint32_t ra[kShort / 8][4], va[kShort / 8][4];
#pragma unroll
    for (int i = 0; i < kShort / 8; ++i) cut_operand(r[i], ra[i]);
    ptx::wgmma_pin(v_new);
    ptx::wgmma_fence();
    multiply_triangle(v_new, ra, tiles + kX, false);
#pragma unroll
    for (int e = 0; e < kShort / 2; ++e)
      out[e / 4][e % 4] = o[e / 4][e % 4] * (e % 2 ? decay_read[e / 4].y : decay_read[e / 4].x) * state.scale.up[e % 4 / 2];
    float2 decay_out[kShort / 8];
    load_pairs(vectors.decay_out, l.t, decay_out);
    RowScale scale;
    if constexpr (!kScaled) decay_state<Io>(state.S, r, whole);  // of r nothing is used
    ptx::wgmma_wait<0>();                                        // v_new
    ptx::wgmma_pin(v_new);

    std::uint32_t u[kShort / 16][4], lo[4];
    {
      Rows32 decayed;
#pragma unroll
      for (int e = 0; e < kShort / 2; ++e) {
        decayed[e / 4][e % 4] = v_new[e / 4][e % 4] * (e % 2 ? decay_out[e / 4].y : decay_out[e / 4].x);
        v_new[e / 4][e % 4] *= kTf32Up;
      }
#pragma unroll
      for (int i = 0; i < kShort / 8; ++i) cut_operand(v_new[i], va[i]);
      if constexpr (kScaled) scale = decay_state<Io>(state.S, decayed, whole);
#pragma unroll
      for (int j = 0; j < kShort / 16; ++j) Warp<Io>::to_operand(decayed[2 * j], decayed[2 * j + 1], scale.down, u[j], lo);
    }
    if constexpr (kTaps)
      if (a.tap_v_new != nullptr)
        tap_rows(v_new, CutRow{chunk.k_norms},
                 a.tap_v_new + ((work.begin + std::int64_t{index} * kShort) * a.HV + work.h) * kD + own, a.HV * kD,
                 work.valid(index), l.group, l.t);
    ptx::wgmma_pin(state.S);
    ptx::wgmma_pin(v_new);
    ptx::wgmma_pin(out);
    ptx::wgmma_fence();
    add_to_state<Io, kD>(state.S, u, tiles + (std::uint64_t{(kTileBytes >> 4) - 1} << 16));  // wgmma_columns of k
    multiply_triangle(out, va, tiles + kP, true);
    ptx::wgmma_wait<1>();  // S
    ptx::wgmma_pin(state.S);
    unscale<Io>(state.S, scale);
    state.make_operand();
    ptx::wgmma_wait<0>();  // o
    ptx::wgmma_pin(out);
    __syncwarp();  // the warp has read the chunk
    if (lane == 0) chunk.read.arrive();
    write_o<Io>(out, chunk.v, w, lane);
    last = turn;
    turn.next();
    read_state(index + 1, turn);
    ptx::fence_async_shared();
    ptx::barrier_sync<kGroup>(barrier);  // o is there
    if (elected && index < full) ptx::tensor_store(maps.o, begin + index * kShort, h, column, chunk.v);
  }
  ptx::wgmma_wait<0>();
  if (full < chunks)  // the rest of the box belongs to others
    store_rows(at(last).v, w,
               static_cast<Io*>(a.o) + ((work.begin + std::int64_t{full} * kShort) * a.HV + work.h) * kD + own, a.HV * kD,
               work.valid(full), lane);
  if (elected) ptx::bulk_store_wait();
  if (!work.slot.write) return;
  if (a.state == DType::f32)
    store_state(static_cast<float*>(a.final_state) + matrix(), state.S, l.group, l.t);
  else
    store_state(static_cast<__nv_bfloat16*>(a.final_state) + matrix(), state.S, l.group, l.t);
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
