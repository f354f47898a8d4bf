// gdn.chunk_sm90, second kernel: the state through the chunks of a sequence (equations: chunk_sm90.cuh).
// grid: x = (n * HV + h) * splits + block of 64 * states V rows        block: warpgroups, first those of the states
//   state    64 V rows of the state. A warp keeps its [16, K] of S, and resid, v_new and o as [16, 64], in registers; each
//            product's result is, register for register, the next one's operand a, and operand b is in shared memory
//   loader   k, q, v and the record of coming chunks, and o of those that are done to global memory
// They meet at full[c % kStages], chunk c is in shared memory, and done[c % kStages], the state warps have left o there.
#pragma once
#include "kernels/gdn/chunk_sm90.cuh"
#include "kernels/gdn/state_slot.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kGroup = 128;  // threads of a warpgroup
inline constexpr int kStages = 3;
inline constexpr int kTileBytes = kC * 128;  // a tile of 64 rows of 128 bytes

template <int kHeadSize, int kStateGroups>
struct Shape90 {
  static constexpr int D = kHeadSize, states = kStateGroups, threads = kGroup * (states + 1);
  static constexpr int splits = D / (64 * states);                    // blocks of a (sequence, head)
  static constexpr bool share_registers = states > 1;                 // else there are enough
  static constexpr int loader_registers = 56, state_registers = 224;  // with two states; 384 threads start with 168
};

// k and q of a chunk as tiles of 64 channels, its record, and by state warp v, then o.
template <class Io, class Shape>
struct alignas(1024) Stage90 {
  Io k[Shape::D / 64][kC * 64], q[Shape::D / 64][kC * 64];
  Record90 record;
  Columns16 v[4 * Shape::states];
};
template <class Io, class Shape>
struct alignas(1024) Smem90 {
  Stage90<Io, Shape> stages[kStages];
  ptx::Mbarrier full[kStages], done[kStages];
};
// The stage of a chunk and the parity of its phase, chunk after chunk.
struct Turn {
  int stage = 0;
  std::uint32_t parity = 0;
  __device__ void next() {
    if (++stage == kStages) {
      stage = 0;
      parity ^= 1;
    }
  }
};

// What a block works on.
struct Work {
  std::int64_t n, h, hk, begin, end;
  int chunks, column;  // column: first V row of the block
  StateSlot slot;
  __device__ int valid(int chunk) const {
    const std::int64_t left = end - begin - std::int64_t{chunk} * kC;
    return static_cast<int>(left < kC ? left : kC);
  }
};

// Where parts of a stage stand in shared memory, known to be the same in all lanes: what describes them to wgmma is then
// worked out once a warp.
template <class Stage>
struct Addresses {
  const Stage& stage;
  std::uint32_t base;
  explicit __device__ Addresses(const Stage& of) : stage(of), base(__shfl_sync(kAll, shared_address(&of), 0)) {}
  template <class Part>
  __device__ std::uint32_t operator()(const Part& part) const {
    return base + static_cast<std::uint32_t>(reinterpret_cast<const char*>(&part) - reinterpret_cast<const char*>(&stage));
  }
};

// d += a X^T for a tile X, [32, 32] or [64, 32], and a [64, 32] in tf32; committed. A product into a part of the
// accumulators of another would make ptxas wait after every wgmma.
using Rows32 = float[kHalf / 8][4];
template <int kCount>
__device__ void multiply_tile(float (&d)[kCount][4], const std::uint32_t (&a)[kHalf / 8][4], std::uint32_t X) {
  const std::uint64_t b = ptx::wgmma_rows(X);
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

// d += s x^T for keys x in tiles of 64 channels; committed.
template <class Io, int kD>
__device__ void multiply_state(Rows64& d, const std::uint32_t (&s)[kD / 16][4], std::uint32_t x) {
#pragma unroll
  for (int c = 0; c < kD / 64; ++c) {
    const std::uint64_t b = ptx::wgmma_rows(x + c * kTileBytes);
#pragma unroll
    for (int step = 0; step < 4; ++step) ptx::wgmma_m64n64k16<Io>(d, s[4 * c + step], b + 2 * step);
  }
  ptx::wgmma_commit();
}

// S += u k, for u [64, 64] as operand a in io; committed.
template <class Io, int kD>
__device__ void add_to_state(float (&S)[kD / 8][4], const std::uint32_t (&u)[kC / 16][4], std::uint32_t k) {
  const std::uint64_t b = ptx::wgmma_columns(k, kTileBytes);
#pragma unroll
  for (int j = 0; j < kC / 16; ++j) {
    if constexpr (kD == 128)
      ptx::wgmma_m64n128k16_columns<Io>(S, u[j], b + 128 * j);
    else
      ptx::wgmma_m64n64k16_columns<Io>(S, u[j], b + 128 * j);
  }
  ptx::wgmma_commit();
}

// [16, 64] scale * x as rows of o, tokens by V rows.
template <class Io>
__device__ void write_o(const Rows64& x, float scale, Columns16& buffer) {
  const int lane = threadIdx.x % 32;
  const std::uint32_t to = shared_address(&buffer.at[Columns16::index(lane / 16 * 8 + lane % 8, lane / 8 % 2)]);
#pragma unroll
  for (int i = 0; i < kC / 8; i += 2) {
    std::uint32_t tokens[4];  // of 8 tokens, V rows 0 .. 7 and 8 .. 15, then of the next 8
#pragma unroll
    for (int m = 0; m < 4; ++m)
      tokens[m] = pack2<Io>(scale * x[i + m / 2][2 * (m % 2)], scale * x[i + m / 2][2 * (m % 2) + 1]);
    ptx::stmatrix_x4_trans(to + 32 * 8 * i, tokens);
  }
}

template <class Io, class Shape>
__device__ void do_chunk(const Params& p, const Work& work, int chunk, int warp, const Turn& turn, Smem90<Io, Shape>& smem,
                         float (&S)[Shape::D / 8][4]) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Warp<Io> l;
  Stage90<Io, Shape>& stage = smem.stages[turn.stage];
  const Record90& record = stage.record;
  const Addresses<Stage90<Io, Shape>> address(stage);

  float largest[2] = {0, 0};
  Warp<Io>::largest_of(S, largest);
  const RowScale scale = Warp<Io>::row_scale(largest);
  std::uint32_t s[kD / 16][4], lo[4];
#pragma unroll
  for (int c = 0; c < kD / 16; ++c) Warp<Io>::to_operand(S[2 * c], S[2 * c + 1], scale.down, s[c], lo);
  Rows64 r = {}, o = {};
  smem.full[turn.stage].wait(turn.parity);
  ptx::wgmma_pin(r);
  ptx::wgmma_pin(o);
  ptx::wgmma_fence();
  multiply_state<Io, kD>(r, s, address(stage.k));
  multiply_state<Io, kD>(o, s, address(stage.q));
  ptx::wgmma_wait<1>();  // r
  ptx::wgmma_pin(r);
  const std::uint32_t v = stage.v[warp].address(l.lane);
  residuals<Io, 0, kHalf / 8>(r, scale, v, record.beta, record.decay_in, l.t);

  std::uint32_t half[2][kHalf / 8][4];
  to_tf32<0>(r, half[0]);
  Rows32 v0 = {}, v1 = {}, A10_v0 = {}, P1_v1 = {};
  ptx::wgmma_pin(v0);
  ptx::wgmma_fence();
  multiply_tile(v0, half[0], address(record.D[0]));
  residuals<Io, kHalf / 8, kHalf / 8>(r, scale, v, record.beta, record.decay_in, l.t);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(v0);
  ptx::wgmma_pin(o);

  to_tf32<0>(v0, half[0]);
  ptx::wgmma_pin(A10_v0);
  ptx::wgmma_fence();
  multiply_tile(A10_v0, half[0], address(record.A10));
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
  multiply_tile(v1, half[1], address(record.D[1]));
  multiply_tile(o, half[0], address(record.P0));
  ptx::wgmma_wait<1>();  // v1
  ptx::wgmma_pin(v1);
  to_tf32<0>(v1, half[1]);
  ptx::wgmma_pin(P1_v1);
  ptx::wgmma_fence();
  multiply_tile(P1_v1, half[1], address(record.P1));

  Rows64 v_new;
#pragma unroll
  for (int i = 0; i < kC / 8; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) v_new[i][e] = i < kHalf / 8 ? v0[i % (kHalf / 8)][e] : v1[i % (kHalf / 8)][e];
  if (a.tap_v_new != nullptr)
    tap_rows(v_new, true,
             a.tap_v_new + ((work.begin + std::int64_t{chunk} * kC) * a.HV + work.h) * kD + work.column + 16 * warp,
             a.HV * kD, work.valid(chunk), l.group, l.t);
  scale_tokens(v_new, record.decay_out, l.t);
  const RowScale shared_scale = decay_state<Io>(S, v_new, record.decay_in[kC - 1]);
  std::uint32_t u[kC / 16][4];
#pragma unroll
  for (int j = 0; j < kC / 16; ++j) Warp<Io>::to_operand(v_new[2 * j], v_new[2 * j + 1], shared_scale.down, u[j], lo);
  ptx::wgmma_pin(S);
  ptx::wgmma_fence();
  add_to_state<Io, kD>(S, u, address(stage.k));
  ptx::wgmma_wait<1>();  // o
  ptx::wgmma_pin(o);
  ptx::wgmma_pin(P1_v1);
#pragma unroll
  for (int i = 0; i < kHalf / 8; ++i)
#pragma unroll
    for (int e = 0; e < 4; ++e) o[kHalf / 8 + i][e] += P1_v1[i][e];
  __syncwarp();  // the warp has read its v
  write_o<Io>(o, a.scale, stage.v[warp]);
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(S);
  unscale<Io>(S, shared_scale);
  __syncwarp();  // the warp has read the chunk, and its o is there
  if (l.lane == 0) smem.done[turn.stage].arrive();
}

template <class Io, class Shape>
__device__ void run_state(const Params& p, const Work& work, Smem90<Io, Shape>& smem, int group) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Lane l;
  const int warp = 4 * group + threadIdx.x / 32 % 4, column = work.column + 16 * warp;
  const std::int64_t matrix = work.slot.first + (work.h * kD + column) * kD;
  float S[kD / 8][4] = {};
  if (work.slot.read) {
    if (a.state == DType::f32)
      load_state(static_cast<const float*>(a.initial_state) + matrix, S, l.group, l.t);
    else
      load_state(static_cast<const __nv_bfloat16*>(a.initial_state) + matrix, S, l.group, l.t);
  }
  const std::int64_t tap_block = a.tap_S != nullptr ? chunks_before(p, work.n) : 0;
  Turn turn;
  for (int chunk = 0; chunk < work.chunks; ++chunk, turn.next()) {
    if (a.tap_S != nullptr)
      store_state(a.tap_S + (((tap_block + chunk) * a.HV + work.h) * kD + column) * kD, S, l.group, l.t);
    do_chunk<Io, Shape>(p, work, chunk, warp, turn, smem, S);
  }
  if (!work.slot.write) return;
  if (a.state == DType::f32)
    store_state(static_cast<float*>(a.final_state) + matrix, S, l.group, l.t);
  else
    store_state(static_cast<__nv_bfloat16*>(a.final_state) + matrix, S, l.group, l.t);
}

template <class Io, class Shape>
__device__ void run_loader(const Params& p, const Work& work, Smem90<Io, Shape>& smem) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const int lane = threadIdx.x % 32, own = threadIdx.x / 32 % 4;  // this warp's state warps are own, own + 4 ..
  const std::int64_t key = (work.begin * a.HK + work.hk) * kD, value = (work.begin * a.HV + work.h) * kD + work.column;
  const Io* k = static_cast<const Io*>(p.k_unit ? p.k_unit : a.k) + key;
  const Io* q = static_cast<const Io*>(p.q_unit ? p.q_unit : a.q) + key;
  const Io* v = static_cast<const Io*>(a.v) + value;
  Io* o = static_cast<Io*>(a.o) + value + (lane / 2) * a.HV * kD + 8 * (lane % 2);
  const Record90* records = records_of<Record90>(p) + first_slot(work.begin, work.n) * a.HV + work.h;
  const std::int64_t key_stride = a.HK * kD, value_stride = a.HV * kD;
  Turn turn;
  for (int chunk = 0; chunk < work.chunks + kStages; ++chunk, turn.next()) {
    Stage90<Io, Shape>& stage = smem.stages[turn.stage];
    ptx::Mbarrier& full = smem.full[turn.stage];
    if (chunk >= kStages) {  // the stage holds o of the chunk that was in it
      smem.done[turn.stage].wait_asleep(turn.parity ^ 1);
      const int before = chunk - kStages, valid = work.valid(before);
#pragma unroll
      for (int warp = 0; warp < 4 * Shape::states; warp += 4)
#pragma unroll
        for (int i = 0; i < kC / 16; ++i) {
          const int row = 16 * i + lane / 2;
          if (row < valid)
            *reinterpret_cast<uint4*>(o + (std::int64_t{before} * kC + 16 * i) * value_stride + 16 * (warp + own)) =
                stage.v[warp + own].at[Columns16::index(row, lane % 2)];
        }
      __syncwarp();  // the warp has read its o
    }
    if (chunk < work.chunks) {
      if (threadIdx.x % kGroup == 0) {
        full.arrive_expect(kRecordBytes);
        ptx::bulk_load(&stage.record, records + chunk * a.HV, kRecordBytes, full);
      }
      const int valid = work.valid(chunk);
      const std::int64_t key_at = std::int64_t{chunk} * kC * key_stride, value_at = std::int64_t{chunk} * kC * value_stride;
#pragma unroll
      for (int c = 0; c < kD / 64; ++c) {
        Tile<64>::load<kC, kGroup>(shared_address(stage.k[c]), k + key_at + 64 * c, key_stride, valid);
        Tile<64>::load<kC, kGroup>(shared_address(stage.q[c]), q + key_at + 64 * c, key_stride, valid);
      }
#pragma unroll
      for (int warp = 0; warp < 4 * Shape::states; warp += 4)
        load_columns(stage.v[warp + own], v + value_at + 16 * (warp + own), value_stride, valid, lane);
    }
    ptx::cp_async_commit();
    if (chunk > 0 && chunk <= work.chunks) {  // the chunk before this one has come
      ptx::cp_async_wait<1>();
      ptx::fence_async_shared();
      smem.full[(turn.stage + kStages - 1) % kStages].arrive();
    }
  }
}

template <class Io, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) states(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<Smem90<Io, Shape>*>(shared);
  const Args& a = p.args;
  const std::int64_t head = blockIdx.x / Shape::splits, n = head / a.HV, h = head % a.HV;
  const Rows rows = rows_of(p, n);
  const StateSlot slot = state_slot(a, n, rows.begin == rows.end);
  const int column = static_cast<int>(blockIdx.x % Shape::splits) * 64 * Shape::states;
  if (slot.absent) return zero_output<Io>(a, h, rows, column, 64 * Shape::states);
  const int chunks = static_cast<int>((rows.end - rows.begin + kC - 1) / kC);
  const Work work{n, h, h / (a.HV / a.HK), rows.begin, rows.end, chunks, column, slot};
  if (threadIdx.x == 0) {
    for (ptx::Mbarrier& barrier : smem.full) barrier.init(kGroup + 1);
    for (ptx::Mbarrier& barrier : smem.done) barrier.init(4 * Shape::states);
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
