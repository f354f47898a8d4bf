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

#include <algorithm>

#include "kernels/device/convert.cuh"
#include "kernels/device/gate.cuh"
#include "kernels/device/row_norm.cuh"
#include "kernels/gdn_decode/launch.cuh"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gdn_decode {

inline constexpr int kBlock = 64;                // threads
inline constexpr std::uint32_t kFewWarps = 256;  // up to here a block is one warp, so that they spread over all SMs
inline constexpr unsigned kAll = 0xffffffffu;

// Where the elements of rows of up to kK channels lie.
template <class Stored, int kK, bool kWide>
struct Tiling {
  static constexpr int kInFlight = kWide && kK > 64 && sizeof(Stored) == 4 ? 16 : 8;  // packs a lane, as registers allow
  static constexpr int kPack = 16 / sizeof(Stored);                                   // elements a lane and pack
  static constexpr int kLanes = kK / kPack < 32 ? kK / kPack : 32, kPacks = kK / (kLanes * kPack);
  static constexpr int kBeside = 32 / kLanes;                            // rows side by side in a warp
  static constexpr int kDeep = kInFlight / kPacks;                       // and one after the other
  static constexpr int kRows = kDeep * kBeside;                          // of a warp
  static constexpr int kSpare = kLanes / kDeep;                          // lanes that end up with the same sum
  static constexpr int kBlocksPerSm = kWide && kInFlight == 8 ? 10 : 8;  // 96 or 128 registers a thread
  static_assert(kDeep <= kLanes && kRows <= 32);
};

struct Params {
  Args args;
  std::uint32_t splits, warps;  // row blocks of a head; of the whole call
  std::uint32_t group;          // value heads a key head
  bool wide_io;                 // rows of q and k can be read in packs
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

// This lane's channels of q or k, normalised: x / sqrt(sum x^2 + 1e-6). Every row's lanes hold a copy.
template <class Math, int kLanes, int kCount>
__device__ void normalise(float (&x)[kCount]) {
  const RowNorm norm = row_norm<Math>([&](float down) {
    float sum[1] = {0.0f};
#pragma unroll
    for (int c = 0; c < kCount; ++c) sum[0] = fmaf(x[c] * down, x[c] * down, sum[0]);
    return fold<kLanes / 2>(sum, 0);
  });
#pragma unroll
  for (int c = 0; c < kCount; ++c) x[c] = x[c] * norm.down * norm.r;
}

template <class Io, class Tile, int kChannels>
__device__ void load_key(const Params& p, const Io* row, int lane, float (&x)[kChannels]) {
#pragma unroll
  for (int i = 0; i < Tile::kPacks; ++i) {
    const int first = (i * Tile::kLanes + lane) * Tile::kPack;
    const auto pack = load_pack<Io, Tile::kPack>(row, first, static_cast<int>(p.args.K), p.wide_io);
#pragma unroll
    for (int c = 0; c < Tile::kPack; ++c) x[i * Tile::kPack + c] = to_f32(pack.at[c]);
  }
}

// 16 bytes of the pool as they stand in memory, which nobody else reads and which are soon written: no place in a cache.
template <class Stored>
struct Words {
  static constexpr int kPack = 16 / sizeof(Stored);
  std::uint32_t at[4];

  // Elements first .. first + kPack - 1 of a row of size elements; those at and past size are zero and not read.
  template <bool kWide>
  __device__ void load(const Stored* row, int first, int size) {
    uint4 x = make_uint4(0, 0, 0, 0);
    if constexpr (kWide) {
      if (first < size) x = __ldcs(reinterpret_cast<const uint4*>(row + first));
      at[0] = x.x, at[1] = x.y, at[2] = x.z, at[3] = x.w;
    } else {
      float of[kPack];
#pragma unroll
      for (int c = 0; c < kPack; ++c) of[c] = first + c < size ? to_f32(row[first + c]) : 0.0f;
      set(of);
    }
  }
  template <bool kWide>
  __device__ void store(Stored* row, int first, int size) const {
    if constexpr (kWide) {
      if (first < size) __stcs(reinterpret_cast<uint4*>(row + first), make_uint4(at[0], at[1], at[2], at[3]));
    } else {
#pragma unroll
      for (int c = 0; c < kPack; ++c)
        if (first + c < size) row[first + c] = from_f32<Stored>(get(c));
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

// kWide: K is kK and rows of the pool start at multiples of 16 bytes.
template <class Io, class Stored, int kK, bool kWide, class Math>
__global__ void __launch_bounds__(kBlock, Tiling<Stored, kK, kWide>::kBlocksPerSm) kernel(const __grid_constant__ Params p) {
  using Tile = Tiling<Stored, kK, kWide>;
  constexpr int kDeep = Tile::kDeep, kPacks = Tile::kPacks, kPack = Tile::kPack, kChannels = kPacks * kPack;
  const Args& a = p.args;
  const std::uint32_t warp = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
  if (warp >= p.warps) return;
  const auto HV = static_cast<std::uint32_t>(a.HV);
  const std::uint32_t head = warp / p.splits, b = head / HV, h = head % HV;
  const int K = static_cast<int>(a.K), V = static_cast<int>(a.V);
  const int lane = threadIdx.x % 32, in_row = lane % Tile::kLanes, beside = lane / Tile::kLanes;
  const int row0 = static_cast<int>(warp % p.splits) * Tile::kRows;
  const int own = row0 + in_row / Tile::kSpare * Tile::kBeside + beside;  // the row whose u and o this lane forms
  const bool writes_o = in_row % Tile::kSpare == 0 && own < V;
  const std::int64_t element = static_cast<std::int64_t>(head) * V + own;  // of o

  const std::int32_t slot = a.state_indices[b];
  const bool fresh = a.has_initial_state != nullptr && a.has_initial_state[b] == 0;
  const std::int64_t token = static_cast<std::int64_t>(b) * (2 * a.HK * K + a.HV * V), hk = h / p.group;
  const Io* packed = static_cast<const Io*>(a.packed_qkv) + token;
  const std::uint32_t gate_bits = load_bits(a.raw_gate, a.gate_dtype, head);
  const std::uint32_t beta_bits = load_bits(a.raw_beta, a.beta_dtype, head);
  const float dt_bias = a.dt_bias[h], A_log = a.A_log[h];
  const float v = own < V ? to_f32(packed[2 * a.HK * K + static_cast<std::int64_t>(h) * V + own]) : 0.0f;
  float q[kChannels], k[kChannels];
  load_key<Io, Tile>(p, packed + hk * K, in_row, q);
  load_key<Io, Tile>(p, packed + (a.HK + hk) * K, in_row, k);
  if (slot <= 0) {  // no slot: zero, and nothing else
    if (writes_o) static_cast<Io*>(a.o)[element] = from_f32<Io>(0.0f);
    return;
  }

  Stored* state = static_cast<Stored*>(a.pool) + slot * a.slot_stride + static_cast<std::int64_t>(h) * V * K;
  Words<Stored> s[kDeep][kPacks];
#pragma unroll
  for (int i = 0; i < kDeep; ++i)
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      const int row = row0 + i * Tile::kBeside + beside;
      s[i][j].template load<kWide>(state + row * K, (j * Tile::kLanes + in_row) * kPack, row < V && !fresh ? K : 0);
    }

  normalise<Math, Tile::kLanes>(q);
  normalise<Math, Tile::kLanes>(k);
  float dot[1] = {0.0f};
#pragma unroll
  for (int c = 0; c < kChannels; ++c) dot[0] = fmaf(k[c], q[c], dot[0]);
  const float kq = fold<Tile::kLanes / 2>(dot, 0);
  const float y = bits_to_f32(gate_bits, a.gate_dtype) + dt_bias;
  const float alpha = Math::exp(softplus_gate<Math>(y, gate_scale(A_log)));
  const float beta = scaled_sigmoid<Math>(a.neg_eigval ? 2.0f : 1.0f, bits_to_f32(beta_bits, a.beta_dtype));

  if (alpha == 0.0f) {  // forgetting is exact: 0 * inf would be NaN
#pragma unroll
    for (int i = 0; i < kDeep; ++i)
#pragma unroll
      for (int j = 0; j < kPacks; ++j) s[i][j].clear();
  }
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
  if (writes_o) static_cast<Io*>(a.o)[element] = from_f32<Io>(a.scale * fmaf(alpha, read, u * kq));

#pragma unroll
  for (int i = 0; i < kDeep; ++i) {
    const int row = row0 + i * Tile::kBeside + beside;
    const float write = __shfl_sync(kAll, u, beside * Tile::kLanes + i * Tile::kSpare);
#pragma unroll
    for (int j = 0; j < kPacks; ++j) {
      float next[kPack];
#pragma unroll
      for (int c = 0; c < kPack; ++c) next[c] = fmaf(write, k[j * kPack + c], alpha * s[i][j].get_again(c));
      s[i][j].set(next);
      s[i][j].template store<kWide>(state + row * K, (j * Tile::kLanes + in_row) * kPack, row < V ? K : 0);
    }
  }
}

template <class Io, class Stored, int kK, bool kWide, class Math>
void launch(const Args& args, cudaStream_t stream) {
  using Tile = Tiling<Stored, kK, kWide>;
  using IoPack = Pack<Io, Tile::kPack>;
  const std::int64_t splits = (args.V + Tile::kRows - 1) / Tile::kRows, warps = args.B * args.HV * splits;
  const std::int64_t token = 2 * args.HK * args.K + args.HV * args.V;
  const Params params{.args = args,
                      .splits = static_cast<std::uint32_t>(splits),
                      .warps = static_cast<std::uint32_t>(warps),
                      .group = static_cast<std::uint32_t>(args.HV / args.HK),
                      .wide_io = args.K % Tile::kPack == 0 && token % Tile::kPack == 0 &&
                                 runtime::aligned(args.packed_qkv, alignof(IoPack))};
  const int threads = warps <= kFewWarps ? 32 : kBlock;
  runtime::launch("gdn_decode", kernel<Io, Stored, kK, kWide, Math>, (warps * 32 + threads - 1) / threads, threads, 0,
                  stream, params);
}

template <class Io, class Stored, class Math>
void launch_on(const Args& args, cudaStream_t stream) {
  const bool wide = runtime::aligned(args.pool, 16) && args.slot_stride * sizeof(Stored) % 16 == 0;
  if (args.K == 64 && wide) return launch<Io, Stored, 64, true, Math>(args, stream);
  if (args.K == 128 && wide) return launch<Io, Stored, 128, true, Math>(args, stream);
  if (args.K == 256 && wide) return launch<Io, Stored, 256, true, Math>(args, stream);
  if (args.K <= 64) return launch<Io, Stored, 64, false, Math>(args, stream);
  if (args.K <= 128) return launch<Io, Stored, 128, false, Math>(args, stream);
  launch<Io, Stored, 256, false, Math>(args, stream);
}

template <class Io, class Math>
void launch_as(const Args& args, cudaStream_t stream) {
  if (args.state == DType::f32) return launch_on<Io, float, Math>(args, stream);
  launch_on<Io, __nv_bfloat16, Math>(args, stream);
}

}  // namespace deltagauge::kernels::gdn_decode
