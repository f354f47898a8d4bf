// gdn.chunk_sm90_segments: maps of segments (chunk_sm90_segments.cuh), from records. The states of chunk_sm90 without what
// only o needs: B are V rows from zero, of a first segment from the sequence's own state; A are K rows from the identity
// with v = 0. A chunk: S k^T; resid; resid X^T, while S decays; u k.
// grid: x = (place * HV + h) * 2 splits + block of 64 * states rows, those of B first
// block: warpgroups, first those of the states, then the loader, of which one warp loads        shared: MapSmem
// It may start while prepare runs, and waits for each record. The segments are full, so that all chunks are.
#pragma once
#include "kernels/gdn/chunk_sm90_segments.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

template <int kHeadSize, int kStateGroups>
struct MapShape {
  static constexpr int D = kHeadSize, states = kStateGroups, threads = kGroup * (states + 1);
  static constexpr int splits = D / (64 * states);  // blocks of B of a (segment, head), and of A
  static constexpr int stages = 4;
  static constexpr bool share_registers = states > 1;  // as Shape90
  static constexpr int loader_registers = 24, state_registers = 240;
};

template <class Io, class Shape>
struct alignas(1024) MapSmem {
  struct Stage {
    Tokens90<Io, Shape::D> k;
    alignas(1024) Inverse90 X;
    Io v[Shape::states][kC * 64];  // of A zeros
    Vectors90 vectors;
    ptx::Mbarrier full, read;
  } stages[Shape::stages];

  __device__ void init(int thread) {
    if (thread == 0) {
      for (Stage& stage : stages) {
        stage.full.init(1);
        stage.read.init(4 * Shape::states);
      }
      ptx::fence_mbarrier_init();
    }
    for (Stage& stage : stages) {
      auto* v = reinterpret_cast<uint4*>(stage.v);
      for (int i = thread; i < static_cast<int>(sizeof stage.v / 16); i += Shape::threads) v[i] = uint4{};
    }
    ptx::fence_async_shared();
  }
};

// A warp; all its lanes go through the waits.
template <class Io, class Shape>
__device__ void load_map_chunks(const Params& p, const Maps90& maps, const Work& work, bool transition,
                                MapSmem<Io, Shape>& smem) {
  const Args& a = p.args;
  auto [records, there] = Records90(p, work);
  const bool elected = threadIdx.x % 32 == 0;
  constexpr auto kVectors = static_cast<std::uint32_t>(offsetof(Vectors90, decay_read));  // P's, which may come later
  Turn<Shape::stages> turn;
  for (int chunk = 0; chunk < work.chunks; ++chunk, turn.next()) {
    auto& stage = smem.stages[turn.stage];
    const Record90& from = records[chunk * a.HV];
    const int row = static_cast<int>(work.begin) + chunk * kC;
    const std::uint32_t said = there.acquire(chunk);  // while the stage is still in use
    if (chunk >= Shape::stages) stage.read.wait_asleep(turn.parity ^ 1);
    if (!elected) continue;
    stage.full.arrive_expect(sizeof stage.k + sizeof stage.X + kVectors + (transition ? 0 : sizeof stage.v));
    stage.k.load(said & kScaledK ? maps.k_scaled : maps.k, row, static_cast<int>(work.hk), stage.full);
    ptx::bulk_load(&stage.X, &from.X, sizeof from.X, stage.full);
    ptx::bulk_load(&stage.vectors, &from.vectors, kVectors, stage.full);
    if (!transition) {
#pragma unroll
      for (int i = 0; i < Shape::states; ++i)
        ptx::tensor_load(stage.v[i], maps.v, row, static_cast<int>(work.h), work.column + 64 * i, stage.full);
    }
  }
}

// A warpgroup: rows 64 * group .. of the block's through all chunks. start: where the state it starts from is left, or
// null; end: where the one it ends in is. Both [rows, kD] of the head. transition: from the identity.
template <class Io, class Shape>
__device__ void run_map(const Params& p, const Work& work, bool transition, int group, float* start, float* end,
                        MapSmem<Io, Shape>& smem) {
  constexpr int kD = Shape::D;
  constexpr bool kScaled = std::is_same_v<Io, __half>;
  const Args& a = p.args;
  const int thread = ptx::thread_id();
  const int lane = thread % 32, w = thread / 32 % 4, own = work.column + 64 * group + 16 * w;  // own: the warp's rows
  const struct { int group, t; } l{lane / 4, lane % 4};
  State90<Io, kD> state;
  if (transition) {
#pragma unroll
    for (int e = 0; e < kD / 2; ++e)
      state.S[e / 4][e % 4] = own + l.group + 8 * (e % 4 / 2) == 8 * (e / 4) + 2 * l.t + e % 2 ? 1.0f : 0.0f;
  } else if (work.slot.read) {
    const std::int64_t matrix = work.slot.first + (work.h * kD + own) * kD;
    if (a.state == DType::f32)
      load_state(static_cast<const float*>(a.initial_state) + matrix, state.S, l.group, l.t);
    else
      load_state(static_cast<const __nv_bfloat16*>(a.initial_state) + matrix, state.S, l.group, l.t);
  }
  if (start != nullptr) store_state(start + own * kD, state.S, l.group, l.t);
  state.make_operand();

  Turn<Shape::stages> turn;
  for (int index = 0; index < work.chunks; ++index, turn.next()) {
    auto& stage = smem.stages[turn.stage];
    const Vectors90& vectors = stage.vectors;
    const std::uint64_t k = ptx::wgmma_rows(shared_address(&stage.k)), X0 = ptx::wgmma_rows(shared_address(stage.X.D0)),
                        X1 = ptx::wgmma_rows(shared_address(stage.X.D1));
    stage.full.wait(turn.parity);
    Rows64 r, v_new;
    ptx::wgmma_pin(r);
    ptx::wgmma_fence();
    multiply_state<Io, kD>(r, state.s, k);
    const ResidInputs<kC> inputs(stage.v[group], vectors, w, lane);
    const float whole = vectors.whole;
    ptx::wgmma_wait<0>();  // S k^T
    ptx::wgmma_pin(r);
    if (whole == 0.0f) forget<kC / 8>(r, vectors.decay_in, l.t);
    inputs.template resid<Io>(r, state.scale);

    ptx::wgmma_pin(r);
    ptx::wgmma_pin(v_new);
    ptx::wgmma_fence();
    multiply_triangle(v_new, r, X0, X1);
    Pairs64 decay;
    load_pairs(vectors.decay_out, l.t, decay);
    if constexpr (!kScaled) decay_state<Io>(state.S, r, whole);  // of r nothing is used
    ptx::wgmma_wait<0>();                                        // v_new
    ptx::wgmma_pin(v_new);

    RowScale scale;
    std::uint32_t u[kC / 16][4], lo[4];
#pragma unroll
    for (int e = 0; e < 4 * (kC / 8); ++e) v_new[e / 4][e % 4] *= e % 2 ? decay[e / 4].y : decay[e / 4].x;
    if constexpr (kScaled) scale = decay_state<Io>(state.S, v_new, whole);
#pragma unroll
    for (int j = 0; j < kC / 16; ++j) Warp<Io>::to_operand(v_new[2 * j], v_new[2 * j + 1], scale.down, u[j], lo);
    ptx::wgmma_pin(state.S);
    ptx::wgmma_fence();
    add_to_state<Io, kD>(state.S, u, k + (std::uint64_t{(kTileBytes >> 4) - 1} << 16));  // wgmma_columns of k
    ptx::wgmma_wait<0>();                                                                // S
    ptx::wgmma_pin(state.S);
    __syncwarp();  // the warp has read the chunk
    if (lane == 0) stage.read.arrive();
    unscale<Io>(state.S, scale);
    state.make_operand();
  }
  store_state(end + own * kD, state.S, l.group, l.t);
}

template <class Io, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1)
    make_maps(const __grid_constant__ Params p, const __grid_constant__ Maps90 maps, const __grid_constant__ Segments of) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  ptx::launch_dependents();
  constexpr int kD = Shape::D, kEnd = kGroup * Shape::states + 32;
  auto& smem = *reinterpret_cast<MapSmem<Io, Shape>*>(shared);
  const Args& a = p.args;
  const int part = static_cast<int>(blockIdx.x % (2 * Shape::splits));
  const bool transition = part >= Shape::splits;
  const std::int64_t h = blockIdx.x / (2 * Shape::splits) % a.HV, place = blockIdx.x / (2 * Shape::splits) / a.HV;
  const Mapped segment = find_mapped(p, of, place);
  const bool first = segment.index == 0;
  // One block waits for what is ahead, so that what follows finds it ended; the others make room for those behind them.
  if (!segment.there || (first && transition)) {
    if (blockIdx.x == 0) ptx::wait_for_dependency();
    return;
  }
  StateSlot slot = state_slot(a, segment.n, false);
  slot.read = slot.read && first;
  const std::int64_t tokens = std::int64_t{1} << of.shift;
  const Work work{segment.n,
                  h,
                  h / (a.HV / a.HK),
                  segment.begin,
                  segment.begin + tokens,
                  static_cast<int>(tokens / kC),
                  part % Shape::splits * 64 * Shape::states,
                  slot};
  smem.init(threadIdx.x);
  __syncthreads();  // the barriers and zeros are there
  const int group = __shfl_sync(kAll, threadIdx.x / kGroup, 0);
  if (group < Shape::states) {
    if constexpr (Shape::share_registers) ptx::setmaxnreg_inc<Shape::state_registers>();
    const std::int64_t matrix = (place * a.HV + h) * kD * kD;
    float *A = of.transition + matrix, *B = of.bias + matrix;
    run_map<Io, Shape>(p, work, transition, group, first ? A : nullptr, transition ? A : B, smem);
    ptx::barrier_arrive<kEnd>(1);  // the warp is done
  } else {
    if constexpr (Shape::share_registers) ptx::setmaxnreg_dec<Shape::loader_registers>();
    if (threadIdx.x % kGroup >= 32) return;
    load_map_chunks<Io, Shape>(p, maps, work, transition, smem);
    ptx::barrier_sync<kEnd>(1);  // the states are done: a warp that waits for the first kernel holds up the others
    ptx::wait_for_dependency();  // so that what follows this kernel finds the first one ended, too
  }
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
