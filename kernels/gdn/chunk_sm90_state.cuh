// gdn.chunk_sm90, second kernel: the state through the chunks of a sequence (equations: chunk_sm90.cuh).
// grid: x = (n * HV + h) * splits + block of 64 * states V rows        block: warpgroups, first those of the states
//   state    64 V rows of the state. A warp keeps its [16, K] of S, and resid, v_new and o as [16, 64], in registers; each
//            product's result is, register for register, the next one's operand a, and operand b is in shared memory
//   loader   k, q and the record of coming chunks
// They meet at full[c % kStages], chunk c is in shared memory, and empty[c % kStages], the state warps have read it.
#pragma once
#include "kernels/gdn/chunk_sm90.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kGroup = 128;  // threads of a warpgroup
inline constexpr int kStages = 3;
inline constexpr int kTileBytes = kC * 128;  // a tile of 64 rows of 128 bytes

template <int kHeadSize, int kStateGroups>
struct Shape90 {
  static constexpr int D = kHeadSize, states = kStateGroups, threads = kGroup * (states + 1);
  static constexpr int splits = D / (64 * states);  // blocks of a (sequence, head)
  static constexpr bool share_registers = states > 1;  // else there are enough
  static constexpr int loader_registers = 40, state_registers = 232;  // with two states; 384 threads start with 168
};

// k and q of a chunk as tiles of 64 channels, and its record.
template <class Io, int kD>
struct alignas(1024) Stage90 {
  Io k[kD / 64][kC * 64], q[kD / 64][kC * 64];
  Record90 record;
};
template <class Io, class Shape>
struct alignas(1024) Smem90 {
  Stage90<Io, Shape::D> stages[kStages];
  Columns16 v[2][4 * Shape::states];  // by warp; v, then o
  ptx::Mbarrier full[kStages], empty[kStages];
};

// What a block works on.
struct Work {
  std::int64_t n, h, hk, begin, end, chunks;
  int column;  // first V row of the block
  __device__ int valid(std::int64_t chunk) const {
    const std::int64_t left = end - begin - chunk * kC;
    return static_cast<int>(left < kC ? left : kC);
  }
};

// d += a X^T for a tile X, [32, 32] or [64, 32], and a [64, 32] in tf32; committed. A product into a part of the
// accumulators of another would make ptxas wait after every wgmma.
using Rows32 = float[kHalf / 8][4];
template <int kCount>
__device__ void multiply_tile(float (&d)[kCount][4], const std::uint32_t (&a)[kHalf / 8][4], const float* X) {
  const std::uint64_t b = ptx::wgmma_rows(shared_address(X));
#pragma unroll
  for (int step = 0; step < kHalf / 8; ++step) {
    if constexpr (kCount == kC / 8)
      ptx::wgmma_m64n64k8_tf32(d, a[step], b + 2 * step);
    else
      ptx::wgmma_m64n32k8_tf32(d, a[step], b + 2 * step);
  }
  ptx::wgmma_commit();
}

template <int kFirst, int kCount>
__device__ void to_tf32(const float (&x)[kCount][4], std::uint32_t (&a)[kHalf / 8][4]) {
#pragma unroll
  for (int i = 0; i < kHalf / 8; ++i) {
    const OperandTf32<false> operand(x[kFirst + i]);
#pragma unroll
    for (int r = 0; r < 4; ++r) a[i][r] = operand.hi[r];
  }
}

// d += s x^T for a tile x of keys; committed.
template <class Io, int kD>
__device__ void multiply_state(Rows64& d, const std::uint32_t (&s)[kD / 16][4], const Io (&x)[kD / 64][kC * 64]) {
#pragma unroll
  for (int c = 0; c < kD / 64; ++c) {
    const std::uint64_t b = ptx::wgmma_rows(shared_address(x[c]));
#pragma unroll
    for (int step = 0; step < 4; ++step) ptx::wgmma_m64n64k16<Io>(d, s[4 * c + step], b + 2 * step);
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
  const int stage_of = static_cast<int>(chunk % kStages);
  const Stage90<Io, kD>& stage = smem.stages[stage_of];
  const Record90& record = stage.record;
  const int valid = work.valid(chunk);

  float largest[2] = {0, 0};
  Warp<Io>::largest_of(S, largest);
  const RowScale scale = Warp<Io>::row_scale(largest);
  std::uint32_t s[kD / 16][4], lo[4];
#pragma unroll
  for (int c = 0; c < kD / 16; ++c) Warp<Io>::to_operand(S[2 * c], S[2 * c + 1], scale.down, s[c], lo);
  Rows64 r = {}, o = {};
  smem.full[stage_of].wait(chunk / kStages % 2);
  ptx::wgmma_pin(r);
  ptx::wgmma_pin(o);
  ptx::wgmma_fence();
  multiply_state<Io, kD>(r, s, stage.k);
  multiply_state<Io, kD>(o, s, stage.q);
  ptx::cp_async_wait<1>();
  __syncwarp();  // the warp's v is there
  ptx::wgmma_wait<1>();  // r
  ptx::wgmma_pin(r);
  residuals<Io, 0, kHalf / 8>(r, scale, v.address(l.lane), record.beta, record.decay_in, l.t);

  std::uint32_t half[2][kHalf / 8][4];
  to_tf32<0>(r, half[0]);
  Rows32 v0 = {}, v1 = {}, A10_v0 = {}, P1_v1 = {};
  ptx::wgmma_pin(v0);
  ptx::wgmma_fence();
  multiply_tile(v0, half[0], record.D[0]);
  residuals<Io, kHalf / 8, kHalf / 8>(r, scale, v.address(l.lane), record.beta, record.decay_in, l.t);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(v0);
  ptx::wgmma_pin(o);

  to_tf32<0>(v0, half[0]);
  ptx::wgmma_pin(A10_v0);
  ptx::wgmma_fence();
  multiply_tile(A10_v0, half[0], record.A10);
  decay_reads<Io>(o, scale, record.decay_in, l.t);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(A10_v0);
#pragma unroll
  for (int i = 0; i < kHalf / 8; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) r[kHalf / 8 + i][e] -= A10_v0[i][e];

  to_tf32<kHalf / 8>(r, half[1]);
  ptx::wgmma_pin(v1);
  ptx::wgmma_pin(o);
  ptx::wgmma_fence();
  multiply_tile(v1, half[1], record.D[1]);
  multiply_tile(o, half[0], record.P0);
  ptx::wgmma_wait<1>();  // v1
  ptx::wgmma_pin(v1);
  to_tf32<0>(v1, half[1]);
  ptx::wgmma_pin(P1_v1);
  ptx::wgmma_fence();
  multiply_tile(P1_v1, half[1], record.P1);

  const std::int64_t first = work.begin + chunk * kC, at = (first * a.HV + work.h) * kD + column;
  Rows64 v_new;
#pragma unroll
  for (int i = 0; i < kC / 8; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) v_new[i][e] = i < kHalf / 8 ? v0[i % (kHalf / 8)][e] : v1[i % (kHalf / 8)][e];
  if (a.tap_v_new != nullptr) tap_rows(v_new, true, a.tap_v_new + at, a.HV * kD, valid, l.group, l.t);
  scale_tokens(v_new, record.decay_out, l.t);
  const RowScale shared_scale = decay_state<Io>(S, v_new, record.decay_in[kC - 1]);
  std::uint32_t u[kC / 16][4];
#pragma unroll
  for (int j = 0; j < kC / 16; ++j) Warp<Io>::to_operand(v_new[2 * j], v_new[2 * j + 1], shared_scale.down, u[j], lo);
  ptx::wgmma_pin(S);
  ptx::wgmma_fence();
  add_to_state<Io, kD>(S, u, stage.k);
  ptx::wgmma_wait<1>();  // o
  ptx::wgmma_pin(o);
  ptx::wgmma_pin(P1_v1);
#pragma unroll
  for (int i = 0; i < kHalf / 8; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) o[kHalf / 8 + i][e] += P1_v1[i][e];
  __syncwarp();  // the warp has read its v
  store_o<Io>(o, a.scale, v, static_cast<Io*>(a.o) + at, a.HV * kD, valid);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(S);
  unscale<Io>(S, shared_scale);
  __syncwarp();  // the warp has read the chunk
  if (l.lane == 0) smem.empty[stage_of].arrive();
}

template <class Io, class Shape>
__device__ void run_state(const Params& p, const Work& work, Smem90<Io, Shape>& smem, int group) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Warp<Io> l;
  const int warp = 4 * group + threadIdx.x / 32 % 4, column = work.column + 16 * warp;
  const std::int64_t matrix = ((work.n * a.HV + work.h) * kD + column) * kD;
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
  if (a.initial_state != nullptr) {
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
  if (a.final_state == nullptr) return;
  if (a.state == DType::f32)
    store_state(static_cast<float*>(a.final_state) + matrix, S, l.group, l.t);
  else
    store_state(static_cast<__nv_bfloat16*>(a.final_state) + matrix, S, l.group, l.t);
}

template <class Io, class Shape>
__device__ void run_loader(const Params& p, const Work& work, Smem90<Io, Shape>& smem) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Io* k = static_cast<const Io*>(p.k_unit ? p.k_unit : a.k);
  const Io* q = static_cast<const Io*>(p.q_unit ? p.q_unit : a.q);
  const Record90* records = records_of<Record90>(p) + first_slot(work.begin, work.n) * a.HV + work.h;
  const auto arrive = [&](std::int64_t chunk) {  // its keys have come
    ptx::fence_async_shared();
    smem.full[chunk % kStages].arrive();
  };
  for (std::int64_t chunk = 0; chunk < work.chunks; ++chunk) {
    Stage90<Io, kD>& stage = smem.stages[chunk % kStages];
    smem.empty[chunk % kStages].wait_asleep(chunk / kStages % 2 ^ 1);
    if (threadIdx.x % kGroup == 0) {
      smem.full[chunk % kStages].arrive_expect(kRecordBytes);
      ptx::bulk_load(&stage.record, records + chunk * a.HV, kRecordBytes, smem.full[chunk % kStages]);
    }
    const std::int64_t at = ((work.begin + chunk * kC) * a.HK + work.hk) * kD;
    const int valid = work.valid(chunk);
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) {
      Tile<64>::load<kC, kGroup>(shared_address(stage.k[c]), k + at + 64 * c, a.HK * kD, valid);
      Tile<64>::load<kC, kGroup>(shared_address(stage.q[c]), q + at + 64 * c, a.HK * kD, valid);
    }
    ptx::cp_async_commit();
    ptx::cp_async_wait<1>();
    if (chunk > 0) arrive(chunk - 1);
  }
  ptx::cp_async_wait<0>();
  if (work.chunks > 0) arrive(work.chunks - 1);
}

template <class Io, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) states(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<Smem90<Io, Shape>*>(shared);
  const Args& a = p.args;
  const std::int64_t head = blockIdx.x / Shape::splits, n = head / a.HV, h = head % a.HV;
  const Rows rows = rows_of(p, n);
  const Work work{n,
                  h,
                  h / (a.HV / a.HK),
                  rows.begin,
                  rows.end,
                  (rows.end - rows.begin + kC - 1) / kC,
                  static_cast<int>(blockIdx.x % Shape::splits) * 64 * Shape::states};
  if (threadIdx.x == 0) {
    for (ptx::Mbarrier& barrier : smem.full) barrier.init(kGroup + 1);
    for (ptx::Mbarrier& barrier : smem.empty) barrier.init(4 * Shape::states);
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there
  const int group = threadIdx.x / kGroup;
  if (group < Shape::states) {
    if constexpr (Shape::share_registers) ptx::setmaxnreg_inc<Shape::state_registers>();
    run_state<Io, Shape>(p, work, smem, group);
  } else {
    if constexpr (Shape::share_registers) ptx::setmaxnreg_dec<Shape::loader_registers>();
    run_loader<Io, Shape>(p, work, smem);
  }
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
