// The gated delta rule token by token, any K, V <= 256. Rows of the state never mix, so an item of work is kRows of them.
//   D = exp(g_t) S;  u = beta_t (v_t - D k_t);  S = D + u k_t^T;  o_t = scale S q_t          all in FP32
// item: (n * HV + h) * ceil(V / kRows) + row block
// grid: x = item; where (sequence, head) pairs are kRounds times what the device holds, a block takes those of kItems items
// that have work, a grid apart: few blocks of an idle pool, none with all of a busy head; or persistent (schedule.cuh)
// block: kThreads threads, kLanes to a group, kRowsPerGroup rows of S to a group, S in registers: lane l of a group holds
// channels 32 i + 4 l .. + 3 of its rows
// shared: Smem, kTokens tokens of q, k (FP32, normalised, zero from K to kK), v, decay and beta; the next kTokens are on
// their way in registers meanwhile.
// Every sum runs in an order that depends on K alone, so a sequence gives the same bits wherever it is packed.
#pragma once
#include <cuda_runtime.h>

#include "kernels/device/convert.cuh"
#include "kernels/device/math.cuh"
#include "kernels/device/row_norm.cuh"
#include "kernels/device/varlen.cuh"
#include "kernels/gdn/launch.cuh"
#include "kernels/gdn/raw_gate.cuh"
#include "kernels/gdn/schedule.cuh"
#include "kernels/gdn/state_slot.cuh"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gdn::recurrent {

inline constexpr int kThreads = 128, kWarps = kThreads / 32;
inline constexpr int kRows = 32, kLanes = 8, kRowsPerGroup = kRows * kLanes / kThreads;
inline constexpr int kRounds = 3, kItems = 4;  // of resident blocks, from which on a static block takes several items
inline constexpr unsigned kAll = 0xffffffffu;

struct Params {
  Args args;
  unsigned row_blocks;  // ceil(V / kRows)
  bool wide_io;         // rows of q and k can be read in packs of kK / 32 elements
  bool wide_state;      // rows of the states can be read and written in packs of 4 elements
};

template <int kK>
struct Smem {
  static constexpr int kTokens = kK == 256 ? 8 : 16;
  alignas(16) float k[kTokens][kK], q[kTokens][kK];
  float v[kTokens][kRows];
  alignas(8) float o[kTokens][kRows];
  float decay[kTokens], beta[kTokens];
};

// Where the block works.
struct Place {
  int n, h, hk;                // sequence, value head, key head
  std::int64_t begin, length;  // first row and number of rows of the sequence
  int row0;                    // first row of S
};

__device__ inline Place place(const Params& p, unsigned n, unsigned part) {
  const Args& a = p.args;
  const Rows rows = sequence_rows(a.cu_seqlens, n, a.N, a.T);
  const unsigned row_blocks = p.row_blocks, group = static_cast<unsigned>(a.HV / a.HK), h = part / row_blocks,
                 row_block = part % row_blocks;
  return {static_cast<int>(n), static_cast<int>(h),   static_cast<int>(h / group),
          rows.begin,          rows.end - rows.begin, static_cast<int>(row_block) * kRows};
}

// kTokens tokens as they stand in memory. Warp w holds q and k of tokens w, w + kWarps, ..., kK / 32 channels a lane.
template <class Io, int kK>
struct Staged {
  static constexpr int kTokens = Smem<kK>::kTokens, kPerWarp = kTokens / kWarps, kChannels = kK / 32;
  static constexpr int kValues = kTokens * kRows / kThreads;
  static_assert(2 * kTokens <= kThreads);
  Pack<Io, kChannels> k[kPerWarp], q[kPerWarp];
  Io v[kValues];
  std::uint32_t scalar;  // thread b < kTokens: bits of g of token b; thread kTokens + b: bits of beta

  // Tokens first .. first + kTokens - 1 of the sequence; those past its end are zero and not read.
  __device__ void load(const Params& p, const Place& at, std::int64_t first) {
    const Args& a = p.args;
    const int thread = threadIdx.x, lane = thread % 32, warp = thread / 32;
    const std::int64_t left = at.length - first;
#pragma unroll
    for (int i = 0; i < kPerWarp; ++i) {
      const int b = warp + kWarps * i;
      const int K = b < left ? static_cast<int>(a.K) : 0;
      const std::int64_t row = ((at.begin + first + b) * a.HK + at.hk) * a.K;
      k[i] = load_pack<Io, kChannels>(static_cast<const Io*>(a.k) + row, lane * kChannels, K, p.wide_io);
      q[i] = load_pack<Io, kChannels>(static_cast<const Io*>(a.q) + row, lane * kChannels, K, p.wide_io);
    }
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      const int index = thread + kThreads * i, b = index / kRows, row = at.row0 + index % kRows;
      const std::int64_t element = ((at.begin + first + b) * a.HV + at.h) * a.V + row;
      v[i] = b < left && row < a.V ? static_cast<const Io*>(a.v)[element] : from_f32<Io>(0.0f);
    }
    const int b = thread % kTokens;
    if (thread < 2 * kTokens && b < left) {
      const std::int64_t element = (at.begin + first + b) * a.HV + at.h;
      scalar = thread < kTokens ? load_bits(a.g, a.gate_dtype, element) : load_bits(a.beta, a.beta_dtype, element);
    } else {
      scalar = 0;
    }
  }

  template <class Math>
  __device__ void store(const Args& a, int h, Smem<kK>& smem) const {
    const int thread = threadIdx.x, warp = thread / 32;
#pragma unroll
    for (int i = 0; i < kPerWarp; ++i) {
      store_row<Math>(a, k[i], smem.k[warp + kWarps * i]);
      store_row<Math>(a, q[i], smem.q[warp + kWarps * i]);
    }
#pragma unroll
    for (int i = 0; i < kValues; ++i) {
      const int index = thread + kThreads * i;
      smem.v[index / kRows][index % kRows] = to_f32(v[i]);
    }
    if (thread < kTokens) {
      float g = bits_to_f32(scalar, a.gate_dtype);
      if (a.transform != Transform::none) g = transform_gate<Math>(a, g, head_gate(a, h));
      smem.decay[thread] = Math::exp(g);
    } else if (thread < 2 * kTokens) {
      smem.beta[thread - kTokens] = bits_to_f32(scalar, a.beta_dtype);
    }
  }

 private:
  // One row from a warp's registers to shared memory, normalised when asked: x / sqrt(sum x^2 + 1e-6).
  template <class Math>
  __device__ static void store_row(const Args& a, const Pack<Io, kChannels>& pack, float* row) {
    float x[kChannels];
#pragma unroll
    for (int c = 0; c < kChannels; ++c) x[c] = to_f32(pack.at[c]);
    if (a.l2norm) {
      const RowNorm norm = row_norm<Math>([&](float down) {
        float sum = 0;
#pragma unroll
        for (int c = 0; c < kChannels; ++c) sum = fmaf(x[c] * down, x[c] * down, sum);
#pragma unroll
        for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(kAll, sum, mask);
        return sum;
      });
#pragma unroll
      for (int c = 0; c < kChannels; ++c) x[c] = x[c] * norm.down * norm.r;
    }
    const int first = static_cast<int>(threadIdx.x % 32) * kChannels;
    if constexpr (kChannels == 2) {
      *reinterpret_cast<float2*>(row + first) = make_float2(x[0], x[1]);
    } else {
#pragma unroll
      for (int c = 0; c < kChannels; c += 4)
        *reinterpret_cast<float4*>(row + first + c) = make_float4(x[c], x[c + 1], x[c + 2], x[c + 3]);
    }
  }
};

// A thread's part of the state.
template <int kK>
struct State {
  static constexpr int kQuads = kK / 32;
  float4 s[kRowsPerGroup][kQuads];

  // One token for the rows of this thread's group, which start at row (within the block).
  __device__ void step(const Smem<kK>& smem, int b, int row, int lane, float scale, float (&o)[kRowsPerGroup]) {
    const float decay = smem.decay[b], beta = smem.beta[b];
    if (decay == 0.0f) clear();  // forgetting is exact: 0 * inf would be NaN
    float dot[kRowsPerGroup];
    float4 k[kQuads];
    float4 sum[kRowsPerGroup] = {};
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      k[i] = *reinterpret_cast<const float4*>(&smem.k[b][32 * i + 4 * lane]);
#pragma unroll
      for (int r = 0; r < kRowsPerGroup; ++r) {
        s[r][i] = make_float4(decay * s[r][i].x, decay * s[r][i].y, decay * s[r][i].z, decay * s[r][i].w);
        multiply_add(s[r][i], k[i], sum[r]);
      }
    }
#pragma unroll
    for (int r = 0; r < kRowsPerGroup; ++r) {
      dot[r] = reduce(sum[r]);
      sum[r] = float4{};
    }
#pragma unroll
    for (int r = 0; r < kRowsPerGroup; ++r) {
      const float u = beta * (smem.v[b][row + r] - dot[r]);
      const float4 u4 = make_float4(u, u, u, u);
#pragma unroll
      for (int i = 0; i < kQuads; ++i) multiply_add(u4, k[i], s[r][i]);
    }
#pragma unroll
    for (int i = 0; i < kQuads; ++i) {
      const float4 q = *reinterpret_cast<const float4*>(&smem.q[b][32 * i + 4 * lane]);
#pragma unroll
      for (int r = 0; r < kRowsPerGroup; ++r) multiply_add(s[r][i], q, sum[r]);
    }
#pragma unroll
    for (int r = 0; r < kRowsPerGroup; ++r) o[r] = scale * reduce(sum[r]);
  }

  __device__ void clear() {
#pragma unroll
    for (int r = 0; r < kRowsPerGroup; ++r)
#pragma unroll
      for (int i = 0; i < kQuads; ++i) s[r][i] = float4{};
  }

  // From rows row .. of initial_state, of which those at and past V are zero and not read.
  template <class Stored>
  __device__ void load(const Stored* state, int row, int lane, const Params& p) {
    const int K = static_cast<int>(p.args.K), V = static_cast<int>(p.args.V);
#pragma unroll
    for (int r = 0; r < kRowsPerGroup; ++r)
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const int size = row + r < V ? K : 0;
        const Pack<Stored, 4> x =
            load_pack<Stored, 4>(state + static_cast<std::int64_t>(row + r) * K, 32 * i + 4 * lane, size, p.wide_state);
        s[r][i] = make_float4(to_f32(x.at[0]), to_f32(x.at[1]), to_f32(x.at[2]), to_f32(x.at[3]));
      }
  }
  template <class Stored>
  __device__ void store(Stored* state, int row, int lane, const Params& p) const {
    const int K = static_cast<int>(p.args.K), V = static_cast<int>(p.args.V);
#pragma unroll
    for (int r = 0; r < kRowsPerGroup; ++r)
#pragma unroll
      for (int i = 0; i < kQuads; ++i) {
        const float4 x = s[r][i];
        const Pack<Stored, 4> pack{
            {from_f32<Stored>(x.x), from_f32<Stored>(x.y), from_f32<Stored>(x.z), from_f32<Stored>(x.w)}};
        store_pack<Stored, 4>(state + static_cast<std::int64_t>(row + r) * K, 32 * i + 4 * lane, row + r < V ? K : 0,
                              p.wide_state, pack);
      }
  }

 private:
  __device__ static void multiply_add(const float4& a, const float4& b, float4& sum) {
    sum = make_float4(fmaf(a.x, b.x, sum.x), fmaf(a.y, b.y, sum.y), fmaf(a.z, b.z, sum.z), fmaf(a.w, b.w, sum.w));
  }
  // The sum over the lanes of a group; every lane gets it.
  __device__ static float reduce(const float4& part) {
    float sum = (part.x + part.y) + (part.z + part.w);
#pragma unroll
    for (int mask = kLanes / 2; mask > 0; mask /= 2) sum += __shfl_xor_sync(kAll, sum, mask);
    return sum;
  }
};

// One item. The next may follow without a barrier, as the next tokens do in here.
template <class Io, int kK, class Math>
__device__ void walk_tokens(const Params& p, const Place& at, Smem<kK>& smem) {
  constexpr int kTokens = Smem<kK>::kTokens;
  const Args& a = p.args;
  const int thread = threadIdx.x, lane = thread % kLanes, row = thread / kLanes * kRowsPerGroup;
  const StateSlot slot = state_slot(a, at.n, at.length == 0);
  if (at.length == 0 && !slot.write) return;
  if (slot.absent) {
    zero_output<Io>(a, at.h, {at.begin, at.begin + at.length}, at.row0, kRows);
    return;
  }
  const std::int64_t head = at.h * a.V * a.K;

  State<kK> state;
  Staged<Io, kK> staged;
  staged.load(p, at, 0);
  if (!slot.read) {
    state.clear();
  } else if (a.state == DType::f32) {
    state.load(static_cast<const float*>(a.initial_state) + slot.first + head, at.row0 + row, lane, p);
  } else {
    state.load(static_cast<const __nv_bfloat16*>(a.initial_state) + slot.first + head, at.row0 + row, lane, p);
  }

  for (std::int64_t first = 0; first < at.length; first += kTokens) {
    staged.template store<Math>(a, at.h, smem);
    __syncthreads();  // the staged tokens are there, and o of the tokens before them has been read
    staged.load(p, at, first + kTokens);
    const int count = static_cast<int>(at.length - first < kTokens ? at.length - first : kTokens);
    for (int b = 0; b < count; ++b) {
      float o[kRowsPerGroup];
      state.step(smem, b, row, lane, a.scale, o);
      static_assert(kRowsPerGroup == 2);
      if (lane == 0) *reinterpret_cast<float2*>(&smem.o[b][row]) = make_float2(o[0], o[1]);
    }
    __syncthreads();  // o is there, and the staged tokens have been read
    for (int index = thread; index < count * kRows; index += kThreads) {
      const int b = index / kRows, v = at.row0 + index % kRows;
      const std::int64_t element = ((at.begin + first + b) * a.HV + at.h) * a.V + v;
      if (v < a.V) static_cast<Io*>(a.o)[element] = from_f32<Io>(smem.o[b][index % kRows]);
    }
  }

  const StateSlot end = state_slot(a, at.n, at.length == 0);  // asked again: the loop needs the registers
  if (!end.write) return;
  if (a.state == DType::f32) {
    state.store(static_cast<float*>(a.final_state) + end.first + head, at.row0 + row, lane, p);
  } else {
    state.store(static_cast<__nv_bfloat16*>(a.final_state) + end.first + head, at.row0 + row, lane, p);
  }
}

// Where those of a block's items are that have work, all asked at once: one after the other would wait for memory each. In
// shared memory, so that the body keeps its registers.
struct Items {
  unsigned count;
  Place at[kItems];
  __device__ void find(const Params& p, unsigned parts) {
    if (threadIdx.x < 32) {
      const unsigned lane = threadIdx.x, item = blockIdx.x + lane * gridDim.x, n = item / parts;
      const bool works = lane < kItems && n < p.args.N && has_work(p.args, n);
      const unsigned mask = __ballot_sync(kAll, works);
      if (works) at[__popc(mask & ((1u << lane) - 1))] = place(p, n, item % parts);
      if (lane == 0) count = __popc(mask);
    }
    __syncthreads();  // the items are there
  }
};

// How a block gets its items: one, kItems a grid apart, or all that its walk finds.
enum class Form { one, several, persistent };

template <class Io, int kK, class Math, Form kForm>
__global__ void __launch_bounds__(kThreads, kK == 256 ? 2 : 4) kernel(const __grid_constant__ Params p) {
  __shared__ Smem<kK> smem;
  const unsigned parts = static_cast<unsigned>(p.args.HV) * p.row_blocks;
  if constexpr (kForm == Form::one) {
    walk_tokens<Io, kK, Math>(p, place(p, blockIdx.x / parts, blockIdx.x % parts), smem);
  } else if constexpr (kForm == Form::several) {
    __shared__ Items items;
    items.find(p, parts);
    for (unsigned i = 0; i < items.count; ++i) walk_tokens<Io, kK, Math>(p, items.at[i], smem);
  } else {
    __shared__ Walk walk;
    __shared__ Place at;  // not in registers, which the body needs
    walk.start();
    while (walk.next(p.args, parts, [&](unsigned n) { return has_work(p.args, n); })) {
      if (threadIdx.x == 0) at = place(p, walk.n, walk.part);
      __syncthreads();  // the place is there
      walk_tokens<Io, kK, Math>(p, at, smem);
    }
  }
}

template <class Io, int kK, class Math>
void launch(const Args& args, cudaStream_t stream) {
  using IoPack = Pack<Io, kK / 32>;
  const std::size_t state_pack = 4 * size_of(args.state);
  const auto row_blocks = static_cast<unsigned>((args.V + kRows - 1) / kRows);
  const std::int64_t heads = args.N * args.HV;
  constexpr auto *kOne = kernel<Io, kK, Math, Form::one>, *kSeveral = kernel<Io, kK, Math, Form::several>;
  const bool several = args.schedule != Schedule::persistent &&
                       heads >= kRounds * runtime::resident_blocks("gdn.recurrent", kOne, kThreads, 0);
  const Params params{.args = args,
                      .row_blocks = row_blocks,
                      .wide_io = args.K % (kK / 32) == 0 && runtime::aligned(args.q, alignof(IoPack)) &&
                                 runtime::aligned(args.k, alignof(IoPack)),
                      .wide_state = args.K % 4 == 0 && args.slot_stride % 4 == 0 &&
                                    runtime::aligned(args.initial_state, state_pack) &&
                                    runtime::aligned(args.final_state, state_pack)};
  const std::int64_t items = heads * row_blocks, blocks = several ? (items + kItems - 1) / kItems : items;
  launch_scheduled("gdn.recurrent", several ? kSeveral : kOne, kernel<Io, kK, Math, Form::persistent>, blocks, kThreads, 0,
                   stream, params);
}

}  // namespace deltagauge::kernels::gdn::recurrent

namespace deltagauge::kernels::gdn {

template <class Io, class Math>
void launch_recurrent_as(const Args& args, cudaStream_t stream) {
  if (args.K <= 64) return recurrent::launch<Io, 64, Math>(args, stream);
  if (args.K <= 128) return recurrent::launch<Io, 128, Math>(args, stream);
  recurrent::launch<Io, 256, Math>(args, stream);
}

}  // namespace deltagauge::kernels::gdn
