// One token a sequence on a state pool, K, V <= 256, all in FP32. Per row S of the state and its value v:
//   u = beta (v - alpha S.k)    o = scale (alpha S.q + u k.q)    S' = alpha S + u k
// A warp owns kRows rows of one (sequence, value head) and shares nothing with others: no shared memory, no barrier.
//   grid: x = warps / (warps of a block)        warp: ((b * HV + h) * ceil(V / kRows) + row block)
// A row lies over kLanes lanes, 16 bytes a lane and pack; kLanes < 32: 32 / kLanes rows side by side. All rows are on their
// way before the first is used, and while they are, the warp normalises q and k and forms alpha and beta, which wait for
// none of them. The rows' sums are folded together: each exchange halves the number of sums a lane holds, so that 16 pairs
// of sums take 32 exchanges in place of 160. Every sum runs in an order that depends on K and the pool's dtype alone: lane
// by lane a chain, then lanes 16, 8, 4, 2, 1 apart.
#pragma once
#include <cuda_runtime.h>

#include "kernels/device/convert.cuh"
#include "kernels/device/divisor.cuh"
#include "kernels/device/gate.cuh"
#include "kernels/device/ptx/global_16.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/device/row_norm.cuh"
#include "kernels/gdn_decode/launch.cuh"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gdn_decode {

inline constexpr std::uint32_t kFewWarps = 1024;  // up to here a block is one warp, so that they spread over all SMs
inline constexpr unsigned kAll = 0xffffffffu;

// How a warp reads and writes its rows. Stream and Stay: K is kK, every warp has all of its rows, and rows of the pool, q
// and k start at multiples of a pack; so every access is a pack at a fixed distance from the first, without a condition.
enum class Access {
  Stream,  // state is marked as used once: faster where a call's state is small beside L2
  Stay,    // state is left to the caches' own order: faster where it is large
  Single,  // element by element, any size and address
};
// Bytes of a call's state. Up to kTinyState few rows a warp are faster, since there are more warps to wait for them;
// kSmallState, about half of an H100's or H200's L2, ends Stream. Measured at 1, 2, 8, 16, 32, 64, ... MiB.
inline constexpr std::int64_t kTinyState = 4 << 20, kSmallState = 32 << 20;

// Where the elements of rows of up to kSize channels lie. kInFlight: packs a lane.
template <class Stored, int kSize, Access kHow, int kInFlight>
struct Tiling {
  static constexpr int kK = kSize;
  static constexpr Access kAccess = kHow;
  static constexpr int kPack = 16 / sizeof(Stored);  // elements a lane and pack
  static constexpr int kLanes = kK / kPack < 32 ? kK / kPack : 32, kPacks = kK / (kLanes * kPack);
  static constexpr int kBeside = 32 / kLanes;                    // rows side by side in a warp
  static constexpr int kDeep = kInFlight / kPacks;               // and one after the other
  static constexpr int kRows = kDeep * kBeside;                  // of a warp
  static constexpr int kSpare = kLanes / kDeep;                  // lanes that end up with the same sum
  static constexpr int kBlock = kHow == Access::Stay ? 32 : 64;  // threads
  // Asked of the compiler: 64, 80, 96 or 128 registers a thread.
  static constexpr int kOfEight = sizeof(Stored) == 4 ? 24 : 20;
  static constexpr int kWarpsPerSm = kInFlight == 4 ? 32 : kInFlight == 8 && kHow != Access::Single ? kOfEight : 16;
  static_assert(kDeep >= 2 && kDeep <= kLanes && kRows <= 32);
};

struct Params {
  Args args;
  Divisor splits, heads, group;  // row blocks of a head; value heads; value heads a key head
  std::uint32_t warps;           // of the whole call
  std::int64_t keys, token;      // elements of the q of a token, which are those of its k; and of all of it
};

// a on the lanes without the bit of mask, b on those with it, each with the other lane's: half of the exchanges of two sums.
__device__ inline float exchange(float a, float b, int lane, int mask) {
  const bool upper = lane & mask;
  return (upper ? b : a) + __shfl_xor_sync(kAll, upper ? a : b, mask);
}

// The kCount numbers that every lane has to their sums over 2 kMask lanes: lane l ends up with sum l / (2 kMask / kCount).
template <int kMask, int kCount>
__device__ float fold(const float (&x)[kCount], int lane) {
  if constexpr (kMask == 0) {
    return x[0];
  } else {
    float half[kCount > 1 ? kCount / 2 : 1];
    if constexpr (kCount == 1) {
      half[0] = x[0] + __shfl_xor_sync(kAll, x[0], kMask);
    } else {
#pragma unroll
      for (int i = 0; i < kCount / 2; ++i) half[i] = exchange(x[i], x[i + kCount / 2], lane, kMask);
    }
    return fold<kMask / 2>(half, lane);
  }
}

// The sum over a row's lanes and this lane's channels of x y; every lane has it.
template <int kLanes, int kCount>
__device__ float dot(const float (&x)[kCount], const float (&y)[kCount]) {
  float sum[1] = {0.0f};
#pragma unroll
  for (int c = 0; c < kCount; ++c) sum[0] = fmaf(x[c], y[c], sum[0]);
  return fold<kLanes / 2>(sum, 0);
}
template <int kCount>
__device__ void multiply(float (&x)[kCount], float by) {
#pragma unroll
  for (int c = 0; c < kCount; ++c) x[c] *= by;
}

// This lane's channels of q or k, normalised: x / sqrt(sum x^2 + 1e-6). Every row's lanes hold a copy.
template <class Math, int kLanes, int kCount>
__device__ void normalise(float (&x)[kCount]) {
  const RowNorm norm = row_norm<Math>([&](float down) {
    float less[kCount];
#pragma unroll
    for (int c = 0; c < kCount; ++c) less[c] = x[c] * down;
    return dot<kLanes>(less, less);
  });
  multiply(x, norm.down);
  multiply(x, norm.r);
}
// Both, to the same bits: where neither sum is infinite, without a branch between them, so that their exchanges overlap.
template <class Math, int kLanes, int kCount>
__device__ void normalise(float (&q)[kCount], float (&k)[kCount]) {
  const float qq = dot<kLanes>(q, q), kk = dot<kLanes>(k, k);
  if (__any_sync(kAll, isinf(qq) || isinf(kk))) {
    normalise<Math, kLanes>(q);
    normalise<Math, kLanes>(k);
  } else {
    multiply(q, Math::inverse_sqrt(qq + 1e-6f));
    multiply(k, Math::inverse_sqrt(kk + 1e-6f));
  }
}

template <class Io, class Tile, int kChannels>
__device__ void load_key(const Io* row, int size, int lane, float (&x)[kChannels]) {
#pragma unroll
  for (int i = 0; i < Tile::kPacks; ++i) {
    const int first = (i * Tile::kLanes + lane) * Tile::kPack;
    constexpr bool kWide = Tile::kAccess != Access::Single;
    const auto pack = load_pack<Io, Tile::kPack>(row, first, kWide ? Tile::kK : size, kWide);
#pragma unroll
    for (int c = 0; c < Tile::kPack; ++c) x[i * Tile::kPack + c] = to_f32(pack.at[c]);
  }
}

// 16 bytes of the pool as they stand in memory.
template <class Stored>
struct Words {
  static constexpr int kPack = 16 / sizeof(Stored);
  std::uint32_t at[4];

  // The first size elements; the others are zero and not read (size is at least kPack where the access is by packs).
  template <Access kAccess>
  __device__ void load(const Stored* from, int size) {
    if constexpr (kAccess == Access::Single) {
      float of[kPack];
#pragma unroll
      for (int c = 0; c < kPack; ++c) of[c] = c < size ? to_f32(from[c]) : 0.0f;
      set(of);
    } else {
      const uint4 x = kAccess == Access::Stream ? __ldcs(reinterpret_cast<const uint4*>(from)) : ptx::load_global_16(from);
      at[0] = x.x, at[1] = x.y, at[2] = x.z, at[3] = x.w;
    }
  }
  template <Access kAccess>
  __device__ void store(Stored* to, int size) const {
    const uint4 x = make_uint4(at[0], at[1], at[2], at[3]);
    if constexpr (kAccess == Access::Single) {
#pragma unroll
      for (int c = 0; c < kPack; ++c)
        if (c < size) to[c] = from_f32<Stored>(get(c));
    } else if constexpr (kAccess == Access::Stream) {
      __stcs(reinterpret_cast<uint4*>(to), x);
    } else {
      ptx::store_global_16(to, x);
    }
  }

  __device__ float get(int c) const {
    if constexpr (kPack == 4) return __uint_as_float(at[c]);
    return __uint_as_float(c % 2 ? at[c / 2] & 0xffff0000u : at[c / 2] << 16);
  }
  // The same by another instruction, so that the compiler unpacks twice: kept as FP32, bf16 rows would take twice the
  // registers and spill.
  __device__ float get_again(int c) const {
    if constexpr (kPack == 4) return __uint_as_float(at[c]);
    return __uint_as_float(__byte_perm(at[c / 2], 0, c % 2 ? 0x3244 : 0x1044));
  }
  __device__ void set(const float (&x)[kPack]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if constexpr (kPack == 4) {
        at[i] = __float_as_uint(x[i]);
      } else {
        const __nv_bfloat162 pair = __floats2bfloat162_rn(x[2 * i], x[2 * i + 1]);
        at[i] = __bfloat16_as_ushort(pair.x) | static_cast<std::uint32_t>(__bfloat16_as_ushort(pair.y)) << 16;
      }
    }
  }
  __device__ void clear() { at[0] = at[1] = at[2] = at[3] = 0; }
};

template <class Io, class Tile, class Stored, class Math>
__global__ void __launch_bounds__(Tile::kBlock, Tile::kWarpsPerSm * 32 / Tile::kBlock)
    kernel(const __grid_constant__ Params p) {
  constexpr int kDeep = Tile::kDeep, kPacks = Tile::kPacks, kPack = Tile::kPack, kChannels = kPacks * kPack;
  constexpr Access kAccess = Tile::kAccess;
  constexpr bool kWhole = kAccess != Access::Single;
  const Args& a = p.args;
  const std::uint32_t warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  const std::uint32_t head = p.splits.quotient(warp), split = p.splits.remainder(warp, head);
  const std::uint32_t b = p.heads.quotient(head), h = p.heads.remainder(head, b);
  const int K = kWhole ? Tile::kK : static_cast<int>(a.K), V = static_cast<int>(a.V);
  const int lane = threadIdx.x % 32, in_row = lane % Tile::kLanes, beside = lane / Tile::kLanes;
  const int row0 = static_cast<int>(split) * Tile::kRows;
  const int own = row0 + in_row / Tile::kSpare * Tile::kBeside + beside;  // the row whose u and o this lane forms
  const bool has_own = kWhole || own < V, writes_o = in_row % Tile::kSpare == 0 && has_own;
  const std::int64_t element = static_cast<std::int64_t>(head) * V + own;  // of o

  // Before any access and any return. The kernel behind this one may start once all blocks have waited, not before: one that
  // said so ahead of its wait would let it run beside the kernel ahead of this one, of which it knows nothing.
  ptx::wait_for_dependency();
  ptx::launch_dependents();
  if (warp >= p.warps) return;
  const std::int32_t slot = a.state_indices[b];
  const bool fresh = a.has_initial_state != nullptr && a.has_initial_state[b] == 0;
  const Io* packed = static_cast<const Io*>(a.packed_qkv) + b * p.token;
  const Io* q_row = packed + static_cast<std::int64_t>(p.group.quotient(h)) * K;
  float q[kChannels], k[kChannels];
  load_key<Io, Tile>(q_row, K, in_row, q);
  load_key<Io, Tile>(q_row + p.keys, K, in_row, k);
  const std::uint32_t gate_bits = load_bits(a.raw_gate, a.gate_dtype, head);
  const std::uint32_t beta_bits = load_bits(a.raw_beta, a.beta_dtype, head);
  const float dt_bias = a.dt_bias[h], A_log = a.A_log[h];
  const float v = has_own ? to_f32(packed[2 * p.keys + static_cast<std::int64_t>(h) * V + own]) : 0.0f;

  // This lane's first pack; the pack (i, j) is distance(i, j) elements on, and left(i, j) of its elements are there.
  Stored* state = static_cast<Stored*>(a.pool) + slot * a.slot_stride +
                  (static_cast<std::int64_t>(h) * V + row0 + beside) * K + in_row * kPack;
  const auto distance = [&](int i, int j) { return i * Tile::kBeside * K + j * Tile::kLanes * kPack; };
  const auto left = [&](int i, int j) {
    return kWhole ? kPack : row0 + i * Tile::kBeside + beside < V ? K - (j * Tile::kLanes + in_row) * kPack : 0;
  };
  Words<Stored> s[kDeep][kPacks];
  const auto each_pack = [&](const auto& act) {
#pragma unroll
    for (int i = 0; i < kDeep; ++i)
#pragma unroll
      for (int j = 0; j < kPacks; ++j) act(i, j);
  };
  if (slot > 0 && !fresh) {
    each_pack([&](int i, int j) { s[i][j].template load<kAccess>(state + distance(i, j), left(i, j)); });
  } else {
    each_pack([&](int i, int j) { s[i][j].clear(); });
  }

  normalise<Math, Tile::kLanes>(q, k);
  const float kq = dot<Tile::kLanes>(k, q);
  const float y = bits_to_f32(gate_bits, a.gate_dtype) + dt_bias;
  const float alpha = Math::exp(softplus_gate<Math>(y, gate_scale(A_log)));
  const float beta = scaled_sigmoid<Math>(a.neg_eigval ? 2.0f : 1.0f, bits_to_f32(beta_bits, a.beta_dtype));

  if (alpha == 0.0f) each_pack([&](int i, int j) { s[i][j].clear(); });  // forgetting is exact: 0 * inf would be NaN
  float sk[kDeep / 2], sq[kDeep / 2];
#pragma unroll
  for (int i = 0; i < kDeep / 2; ++i) {
    float seen[2] = {0.0f, 0.0f}, read[2] = {0.0f, 0.0f};  // S.k and S.q of rows i and i + kDeep / 2
#pragma unroll
    for (int r = 0; r < 2; ++r)
#pragma unroll
      for (int j = 0; j < kPacks; ++j)
#pragma unroll
        for (int c = 0; c < kPack; ++c) {
          const float x = s[i + r * kDeep / 2][j].get(c);
          seen[r] = fmaf(x, k[j * kPack + c], seen[r]);
          read[r] = fmaf(x, q[j * kPack + c], read[r]);
        }
    sk[i] = exchange(seen[0], seen[1], in_row, Tile::kLanes / 2);
    sq[i] = exchange(read[0], read[1], in_row, Tile::kLanes / 2);
  }
  const float seen = fold<Tile::kLanes / 4>(sk, in_row), read = fold<Tile::kLanes / 4>(sq, in_row);
  const float u = beta * (v - alpha * seen);
  const float o = slot > 0 ? a.scale * fmaf(alpha, read, u * kq) : 0.0f;
  if (writes_o) static_cast<Io*>(a.o)[element] = from_f32<Io>(o);
  if (slot <= 0) return;  // only here: ahead of the loads' uses it would make the loads of q, k and v wait for the slot

#pragma unroll
  for (int i = 0; i < kDeep; ++i) {
    const float write = __shfl_sync(kAll, u, beside * Tile::kLanes + i * Tile::kSpare);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      float next[kPack];
#pragma unroll
      for (int c = 0; c < kPack; ++c) next[c] = fmaf(write, k[j * kPack + c], alpha * s[i][j].get_again(c));
      s[i][j].set(next);
      s[i][j].template store<kAccess>(state + distance(i, j), left(i, j));
    }
  }
}

// Whether rows of this size can be read and written as Stream and Stay do it. V a multiple of a pack: so every row of
// packed_qkv starts at a pack.
template <class Io, class Stored, class Tile>
bool whole(const Args& args) {
  using IoPack = Pack<Io, Tile::kPack>;
  static_assert(Tile::kK % Tile::kPack == 0);
  return args.K == Tile::kK && args.V % Tile::kRows == 0 && args.V % Tile::kPack == 0 && runtime::aligned(args.pool, 16) &&
         args.slot_stride * sizeof(Stored) % 16 == 0 && runtime::aligned(args.packed_qkv, alignof(IoPack));
}

template <class Io, class Stored, class Tile, class Math>
void launch(const Args& args, cudaStream_t stream) {
  const std::int64_t splits = (args.V + Tile::kRows - 1) / Tile::kRows, warps = args.B * args.HV * splits;
  const std::int64_t keys = args.HK * args.K;
  const Params params{.args = args,
                      .splits = Divisor(static_cast<std::uint32_t>(splits)),
                      .heads = Divisor(static_cast<std::uint32_t>(args.HV)),
                      .group = Divisor(static_cast<std::uint32_t>(args.HV / args.HK)),
                      .warps = static_cast<std::uint32_t>(warps),
                      .keys = keys,
                      .token = 2 * keys + args.HV * args.V};
  const int threads = warps <= kFewWarps ? 32 : Tile::kBlock;
  runtime::launch_dependent<kernel<Io, Tile, Stored, Math>>("gdn_decode", (warps * 32 + threads - 1) / threads, threads, 0,
                                                            stream, params);
}

template <class Io, class Stored, int kK, class Math>
void launch_at(const Args& args, cudaStream_t stream) {
  constexpr int kSmall = sizeof(Stored) == 2 ? 4 : kK == 64 ? 8 : 16;
  using Tiny = Tiling<Stored, kK, Access::Stream, 4>;
  using Small = Tiling<Stored, kK, Access::Stream, kSmall>;
  using Large = Tiling<Stored, kK, Access::Stay, 8>;
  const std::int64_t state = args.B * args.HV * args.V * args.K * std::int64_t{sizeof(Stored)};
  if (state <= kTinyState && whole<Io, Stored, Tiny>(args)) return launch<Io, Stored, Tiny, Math>(args, stream);
  if (state <= kSmallState && whole<Io, Stored, Small>(args)) return launch<Io, Stored, Small, Math>(args, stream);
  if (whole<Io, Stored, Large>(args)) return launch<Io, Stored, Large, Math>(args, stream);
  launch<Io, Stored, Tiling<Stored, kK, Access::Single, 8>, Math>(args, stream);
}

template <class Io, class Stored, class Math>
void launch_on(const Args& args, cudaStream_t stream) {
  if (args.K <= 64) return launch_at<Io, Stored, 64, Math>(args, stream);
  if (args.K <= 128) return launch_at<Io, Stored, 128, Math>(args, stream);
  launch_at<Io, Stored, 256, Math>(args, stream);
}

template <class Io, class Math>
void launch_as(const Args& args, cudaStream_t stream) {
  if (args.state == DType::f32) return launch_on<Io, float, Math>(args, stream);
  launch_on<Io, __nv_bfloat16, Math>(args, stream);
}

}  // namespace deltagauge::kernels::gdn_decode
