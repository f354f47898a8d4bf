// gdn.chunk_sm80, second kernel: the state through the chunks of a sequence (Record and its equations: chunk_sm80.cuh).
//   resid_i = beta_i (v_i - exp(b_i) S k_i)                   v_new = (I + A)^-1 resid
//   o_i = scale (exp(b_i) S q_i + sum_{j<=i} P_ij v_new_j)    S' = exp(b_C) S + sum_j (exp(b_C - b_j) v_new_j) k_j^T
// grid: x = (n * HV + h) * (V / rows of a block) + block of V rows, or persistent (schedule.cuh)
// block: kWarps warps of 16 V rows each
// shared: kStages of Stage; with two, chunk c + 1 is on its way while chunk c is worked on.
// Rows of S never meet: a warp keeps its [16, K] of S in registers in f32 and everything between (resid, v_new, o as
// [16, 64]) too; each product's result is, register for register, the next one's operand a. So the bits do not depend on
// kWarps. Operands a: S and what is written to it (exp(b_C - b_j) v_new) in io against k and q; resid and v_new in tf32
// against (I + A)^-1 and P. Shape::split: all of them as hi + lo, the products as hi hi + hi lo + lo hi.
// f16 io: S and what is written to it are scaled by a power of two per row, the largest of a row near 2^13, so that they
// neither overflow nor lose bits however large the state is.
// A chunk's first rows do not depend on its later ones: products with the zeros of P and (I + A)^-1 above the diagonal add
// exact zeros as long as v_new is finite.
#pragma once
#include "kernels/device/tile.cuh"
#include "kernels/gdn/chunk_sm80.cuh"
#include "kernels/gdn/chunk_sm80_warp.cuh"
#include "kernels/gdn/schedule.cuh"

namespace deltagauge::kernels::gdn::chunk_sm80 {

template <class Io, class Shape>
struct alignas(256) Stage {
  Io k[kC * Shape::D], q[kC * Shape::D];
  Columns16 v[Shape::warps];  // v, then o
  Record record;
};

// Where a block works.
struct Place {
  int h, hk;                      // heads
  std::int64_t begin, end, slot;  // rows of the sequence, slot of its first chunk
  int warp, column;               // warp of the block; the warp's first V row
};

template <class Io, class Shape>
__device__ void load_stage(const Params& p, const Place& at, std::int64_t chunk, Stage<Io, Shape>& stage) {
  constexpr int kD = Shape::D, kThreads = 32 * Shape::warps;
  const Args& a = p.args;
  const std::int64_t first = at.begin + chunk * kC, left = at.end - first;
  const int valid = left < kC ? static_cast<int>(left) : kC, lane = threadIdx.x % 32;
  const std::int64_t key = (first * a.HK + at.hk) * kD, value = (first * a.HV + at.h) * kD + at.column;
  const Io* k = static_cast<const Io*>(p.k_unit ? p.k_unit : a.k) + key;
  const Io* q = static_cast<const Io*>(p.q_unit ? p.q_unit : a.q) + key;
  Tile<kD>::template load<kC, kThreads>(shared_address(stage.k), k, a.HK * kD, valid);
  Tile<kD>::template load<kC, kThreads>(shared_address(stage.q), q, a.HK * kD, valid);
  load_columns(stage.v[at.warp], static_cast<const Io*>(a.v) + value, a.HV * kD, valid, lane);
  const char* record = reinterpret_cast<const char*>(records_of<Record>(p) + (at.slot + chunk) * a.HV + at.h);
  const std::uint32_t record_to = shared_address(&stage.record);
#pragma unroll
  for (int i = 0; i < static_cast<int>(sizeof(Record)); i += 16 * kThreads) {
    const int byte = i + 16 * static_cast<int>(threadIdx.x);
    if (byte < static_cast<int>(sizeof(Record))) ptx::cp_async_16(record_to + byte, record + byte);
  }
}

template <class Io, class Shape>
__device__ void do_chunk(const Params& p, const Place& at, std::int64_t chunk, Stage<Io, Shape>& stage,
                         float (&S)[Shape::D / 8][4]) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Warp<Io> l;
  const Record& record = stage.record;
  const std::int64_t first = at.begin + chunk * kC;
  const int valid = static_cast<int>(at.end - first < kC ? at.end - first : kC);

  Rows64 r = {}, o = {};
  float largest[2] = {0, 0};
  Warp<Io>::largest_of(S, largest);
  const RowScale scale = Warp<Io>::row_scale(largest);
  read_state<Io, Shape>(S, scale, shared_address(stage.k), shared_address(stage.q), l.lane, r, o);

  residuals<Io, 0, kC / 8>(r, scale, stage.v[at.warp].address(l.lane), record.beta, record.decay_in, l.t);
  decay_reads<Io>(o, scale, record.decay_in, l.t);
  Rows64 v_new = {};
  multiply_triangle<Shape::split>(v_new, r, record.Ainv, l.lane);
  multiply_triangle<Shape::split>(o, v_new, record.P, l.lane);
  __syncwarp();  // the warp has read its v
  const std::int64_t place = (first * a.HV + at.h) * kD + at.column;
  store_o<Io>(o, a.scale, stage.v[at.warp], static_cast<Io*>(a.o) + place, a.HV * kD, valid);
  if (a.tap_v_new != nullptr)
    tap_rows(
        v_new, [](float x, int) { return Shape::split ? x : round_tf32(x); }, a.tap_v_new + place, a.HV * kD, valid, l.group,
        l.t);
  scale_tokens(v_new, record.decay_out, l.t);
  write_state<Io, Shape>(S, v_new, record.decay_in[kC - 1], shared_address(stage.k), l.lane);
}

// Rows column .. column + 16 * Shape::warps - 1 of the state of value head h through the chunks of sequence n.
template <class Io, class Shape>
__device__ void scan_chunks(const Params& p, int n, int h, int column, Stage<Io, Shape>* stages) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const Rows rows = rows_of(p, n);
  const StateSlot slot = state_slot(a, n, rows.begin == rows.end);
  if (rows.begin == rows.end && !slot.write) return;
  if (slot.absent) return zero_output<Io>(a, h, rows, column, 16 * Shape::warps);
  const int warp = threadIdx.x / 32;
  const Place at{
      h, h / static_cast<int>(a.HV / a.HK), rows.begin, rows.end, first_slot(rows.begin, n), warp, column + 16 * warp};
  const std::int64_t chunks = (rows.end - rows.begin + kC - 1) / kC;
  const std::int64_t matrix = (static_cast<std::int64_t>(h) * kD + at.column) * kD;
  const Warp<Io> l;

  if (Shape::stages > 1 && chunks > 0) load_stage(p, at, 0, stages[0]);
  ptx::cp_async_commit();
  float S[kD / 8][4] = {};
  if (slot.read) {
    if (a.state == DType::f32)
      load_state(static_cast<const float*>(a.initial_state) + slot.first + matrix, S, l.group, l.t);
    else
      load_state(static_cast<const __nv_bfloat16*>(a.initial_state) + slot.first + matrix, S, l.group, l.t);
  }
  const std::int64_t tap_block = a.tap_S != nullptr ? chunks_before(p, n) : 0;

  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    if constexpr (Shape::stages == 1) {
      __syncthreads();  // the last chunk has been read
      load_stage(p, at, chunk, stages[0]);
      ptx::cp_async_commit();
    }
    ptx::cp_async_wait<0>();
    __syncthreads();  // this chunk is there, and the one before it has been read
    if constexpr (Shape::stages > 1) {
      if (chunk + 1 < chunks) load_stage(p, at, chunk + 1, stages[(chunk + 1) % 2]);
      ptx::cp_async_commit();
    }
    if (a.tap_S != nullptr) store_state(a.tap_S + (((tap_block + chunk) * a.HV + h) * kD + at.column) * kD, S, l.group, l.t);
    do_chunk<Io, Shape>(p, at, chunk, stages[Shape::stages > 1 ? chunk % 2 : 0], S);
  }

  const StateSlot end = state_slot(a, n, chunks == 0);  // asked again: the loop needs the registers
  if (!end.write) return;
  if (a.state == DType::f32)
    store_state(static_cast<float*>(a.final_state) + end.first + matrix, S, l.group, l.t);
  else
    store_state(static_cast<__nv_bfloat16*>(a.final_state) + end.first + matrix, S, l.group, l.t);
}

template <class Io, class Shape, bool kPersistent>
__global__ void __launch_bounds__(32 * Shape::warps, 1) scan(const __grid_constant__ Params p) {
  constexpr int kRows = 16 * Shape::warps, kSplits = Shape::D / kRows;
  extern __shared__ __align__(256) char shared[];
  auto* stages = reinterpret_cast<Stage<Io, Shape>*>(shared);
  const Args& a = p.args;
  const unsigned parts = static_cast<unsigned>(a.HV) * kSplits;
  const auto scan_part = [&](unsigned n, unsigned part) {
    scan_chunks<Io, Shape>(p, static_cast<int>(n), static_cast<int>(part / kSplits),
                           static_cast<int>(part % kSplits) * kRows, stages);
  };
  if constexpr (kPersistent) {
    __shared__ Walk walk;
    walk.start();
    while (walk.next(a, parts, [&](unsigned n) { return has_work(a, n); })) scan_part(walk.n, walk.part);
  } else {
    scan_part(blockIdx.x / parts, blockIdx.x % parts);
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm80
