// gdn.chunk_sm90_segments: chunk_sm90 with every sequence in segments of kSegment tokens counted from its start, for calls
// of few heads and long sequences. Segments meet as those of context parallelism do (docs/cp.md):
//   prepare    records of all chunks, that of chunk_sm90
//   make_maps  A and B of S -> S A + B for every segment but the last of its sequence (chunk_sm90_segments_map.cuh); the
//              first one needs no A: it starts from the sequence's own state, so that B is the state it ends in
//   fold       from segment to segment, S <- S A + B in f32: the state that each starts from
//   segments   the states of chunk_sm90 for every segment, and o
// What a segment starts from depends on its sequence alone, and so do the bits. A sequence of one segment has no map.
#pragma once
#include "kernels/device/fold.cuh"
#include "kernels/gdn/chunk_sm90_state.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

// Segment i of sequence n that is not the last of it stands at place floor(begin_n / L) + i. Places of different sequences
// never meet, and there are (T - 1) / L: behind begin + (i + 1) L there is a token.
struct Segments {
  float* bias;        // [places, HV, V, K] B; after the fold, the state that the segment ends in
  float* transition;  // [places, HV, K, K] A; of a first one, the state that its sequence starts from
  int shift;          // L = 2^shift tokens

  __device__ std::int64_t place(std::int64_t begin) const { return begin >> shift; }  // of a sequence's first
  __device__ std::int64_t count(const Rows& rows) const {
    const std::int64_t tokens = rows.end - rows.begin, segments = (tokens + (std::int64_t{1} << shift) - 1) >> shift;
    return segments > 0 ? segments : 1;  // one of a sequence without tokens, too
  }
};
inline std::int64_t segment_places(const Args& args, int shift) { return args.T > 0 ? (args.T - 1) >> shift : 0; }

// Part of args.workspace behind that of chunk_sm90: [bias | transition].
struct SegmentsWorkspace {
  std::size_t bias, transition, bytes;
  SegmentsWorkspace(const Args& a, int shift)
      : bias((chunk_sm90_workspace(a) + 255) / 256 * 256),
        transition(bias + static_cast<std::size_t>(segment_places(a, shift) * a.HV * a.V * a.K) * sizeof(float)),
        bytes(transition + static_cast<std::size_t>(segment_places(a, shift) * a.HV * a.K * a.K) * sizeof(float)) {}
};

// The segment at a place, if there is one: of sequence n, from which row on; its number.
struct Mapped {
  std::int64_t n, begin, index;
  bool there;
};
__device__ inline Mapped find_mapped(const Params& p, const Segments& of, std::int64_t place) {
  const std::int64_t n = find_sequence(p, place, [&](std::int64_t begin, std::int64_t) { return of.place(begin); });
  const Rows rows = rows_of(p, n);
  const std::int64_t index = place - of.place(rows.begin), count = of.count(rows);
  return {n, rows.begin + (index << of.shift), index,
          index >= 0 && index + 1 < count && !state_slot(p.args, n, false).absent};
}

// As find_work(), of a segment at slot floor(begin_n / L) + n + i, as chunks have theirs.
template <class Io, int kD>
__device__ bool find_segment(const Params& p, const Segments& of, std::int64_t pair, int column, int columns,
                             SegmentWork& work) {
  const Args& a = p.args;
  const std::int64_t slot = pair / a.HV, h = pair % a.HV;
  const auto first = [&](std::int64_t begin, std::int64_t n) { return of.place(begin) + n; };
  const std::int64_t n = find_sequence(p, slot, first);
  const Rows rows = rows_of(p, n);
  const std::int64_t index = slot - first(rows.begin, n), count = of.count(rows);
  if (index < 0 || index >= count) return false;
  const std::int64_t begin = rows.begin + (index << of.shift);
  const bool last = index + 1 == count;
  const Rows own = {begin, last ? rows.end : begin + (std::int64_t{1} << of.shift)};
  StateSlot state = state_slot(a, n, rows.begin == rows.end);
  if (state.absent) {
    zero_output<Io>(a, h, own, column, columns);
    return false;
  }
  state.write = state.write && last;
  static_cast<Work&>(work) = {
      n, h, h / (a.HV / a.HK), own.begin, own.end, static_cast<int>((own.end - own.begin + kC - 1) / kC), column, state};
  work.first = static_cast<int>((begin - rows.begin) / kC);
  // The slot may be the one that the last segment writes: of several segments none reads it.
  const std::int64_t matrix = (of.place(rows.begin) * a.HV + h) * kD * kD;
  work.entry = index > 0 ? of.bias + matrix + (index - 1) * a.HV * kD * kD : count > 1 ? of.transition + matrix : nullptr;
  return true;
}

// grid: x = (slot * HV + h) * splits + block of V rows; else as states
template <class Io, class Shape, bool kTaps>
__global__ void __launch_bounds__(Shape::threads, 1)
    segments(const __grid_constant__ Params p, const __grid_constant__ Maps90 maps, const __grid_constant__ Segments of) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  SegmentWork work;
  const int column = static_cast<int>(blockIdx.x % Shape::splits) * 64;
  if (!find_segment<Io, Shape::D>(p, of, blockIdx.x / Shape::splits, column, 64, work)) return ptx::wait_for_dependency();
  run_states<Io, Shape, kTaps>(p, maps, work, *reinterpret_cast<Smem90<Io, Shape>*>(shared));
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

// Only sequences of three segments and more are folded, and those are longer than 2 L: no two stand at one floor(begin / 2
// L).
inline std::int64_t fold_places(const Args& args, int shift) {
  const std::int64_t places = args.T >> (shift + 1);
  return args.N < places ? args.N : places;
}

// grid: x = (place * HV + h) * kFoldBlocks + block of V rows; place: as above, or n where there are fewer sequences
// block: kFoldGroups threads a column, kFoldRows rows each        shared: FoldSmem
inline constexpr int kFoldRows = 4, kFoldGroups = 2;
template <int kD>
inline constexpr int kFoldBlocks = kD / (kFoldRows * kFoldGroups);
template <int kD>
struct FoldSmem {
  float transition[2][kD * kD];
  fold::Column<kFoldRows> states[2][kFoldGroups][kD];  // those that are read and those that are written
  ptx::Mbarrier full[2];
};
template <int kD>
__global__ void __launch_bounds__(kFoldGroups* kD, 1)
    fold_maps(const __grid_constant__ Params p, const __grid_constant__ Segments of) {
  extern __shared__ __align__(1024) char shared[];
  ptx::launch_dependents();
  ptx::wait_for_dependency();  // for the maps
  auto& smem = *reinterpret_cast<FoldSmem<kD>*>(shared);
  constexpr int kBlocks = kFoldBlocks<kD>;
  const std::int64_t HV = p.args.HV, h = blockIdx.x / kBlocks % HV, at_most = p.args.T >> (of.shift + 1);
  std::int64_t n = blockIdx.x / kBlocks / HV;
  if (p.args.N >= at_most) {
    const auto half = [&](std::int64_t begin, std::int64_t) { return begin >> (of.shift + 1); };
    const std::int64_t place = n;
    n = find_sequence(p, place, half);
    if (half(rows_of(p, n).begin, n) != place) return;
  }
  const Rows rows = rows_of(p, n);
  const int c = threadIdx.x % kD, group = threadIdx.x / kD, folds = static_cast<int>(of.count(rows)) - 2;
  if (folds <= 0 || state_slot(p.args, n, false).absent) return;
  const std::int64_t stride = HV * kD * kD;  // from a segment to the next one
  const std::int64_t matrix = ((of.place(rows.begin) + 1) * HV + h) * kD * kD;
  float* const bias = of.bias + matrix;  // of the first fold, that of the second segment
  const float* const transition = of.transition + matrix;
  const bool elected = threadIdx.x == 0;
  if (elected) {
    smem.full[0].init(1);
    smem.full[1].init(1);
    ptx::fence_mbarrier_init();
  }
  const auto load = [&](int i) {
    if (!elected || i >= folds) return;
    smem.full[i % 2].arrive_expect(sizeof smem.transition[0]);
    ptx::bulk_load(smem.transition[i % 2], transition + i * stride, sizeof smem.transition[0], smem.full[i % 2]);
  };
  load(0);
  const fold::Place<kFoldRows> at(blockIdx.x % kBlocks * kFoldGroups + group, kD, kD);
  smem.states[0][group][c] = at.load(bias - stride, c);
  fold::Column<kFoldRows> own = at.load(bias, c);  // B of the coming fold
  for (int i = 0; i < folds; ++i) {
    __syncthreads();  // the states are there; what the last fold read may be written over
    load(i + 1);
    const fold::Column<kFoldRows> next = at.load(i + 1 < folds ? bias + (i + 1) * stride : nullptr, c);
    smem.full[i % 2].wait(i / 2 % 2);
    const auto sum = fold::merged(kD, smem.states[i % 2][group], own, smem.transition[i % 2], c);
    smem.states[(i + 1) % 2][group][c] = sum;
    at.store(sum, bias + i * stride, c);
    own = next;
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
