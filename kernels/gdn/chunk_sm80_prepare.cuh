// gdn.chunk_sm80, first kernel: gates, (I + A)^-1 and P of every chunk (equations in chunk_sm80.cuh).
// grid: x = slot * HK + key head, or persistent (schedule.cuh)        block: two teams of 4 warps; warp w of a team owns
// rows 16 w .. 16 w + 15
//   team 0   k k^T, A and (I + A)^-1 of one value head of the group after the other (chunk_sm80_inverse.cuh)
//   team 1   the gates, transformed first when asked, then q k^T and P of one value head after the other
// shared: PrepareSmem; q and k are normalised there first when asked.
#pragma once
#include "kernels/device/convert.cuh"
#include "kernels/device/math.cuh"
#include "kernels/device/row_norm.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/gdn/chunk_sm80.cuh"
#include "kernels/gdn/chunk_sm80_inverse.cuh"
#include "kernels/gdn/raw_gate.cuh"
#include "kernels/gdn/schedule.cuh"

namespace deltagauge::kernels::gdn::chunk_sm80 {

inline constexpr int kPrepareThreads = 2 * kTeamThreads;

template <class Io, int kD>
struct alignas(256) PrepareSmem {
  Io k[kC * kD], q[kC * kD];
  Factors factors;
  Gates gates[kBlocks];  // of up to four value heads
};

// Chunk of a slot; rows <= 0 when the slot is unused or its sequence has no state slot.
struct Chunk {
  std::int64_t n, index, begin;  // sequence, chunk of the sequence, first row
  int rows;                      // valid ones, at most kC
};
__device__ inline Chunk chunk_of(const Rows& rows, std::int64_t n, std::int64_t index) {
  const std::int64_t begin = rows.begin + index * kC, left = rows.end - begin;
  return {n, index, begin, static_cast<int>(left < 0 ? 0 : left < kC ? left : kC)};
}
// One warp: the last sequence n with first_of(n, its first row) <= slot, for a first_of that does not fall; the first one
// where there is none. Each round narrows the sequences n .. past - 1 that it may be by 33, a probe a lane.
template <class First>
__device__ std::int64_t find_sequence(const Params& p, std::int64_t slot, First first_of) {
  std::int64_t n = 0, past = p.args.N;  // first_of(n) <= slot < first_of(past)
  while (past - n > 1) {
    const std::int64_t step = past - n <= 33 ? 1 : (past - n + 32) / 33, probe = n + (threadIdx.x % 32 + 1) * step;
    const bool before = probe < past && first_of(rows_of(p, probe).begin, probe) <= slot;
    n += __popc(__ballot_sync(kAll, before)) * step;
    past = past < n + step ? past : n + step;
  }
  return n;
}
__device__ inline Chunk find_chunk(const Params& p, std::int64_t slot) {
  const std::int64_t n = find_sequence(p, slot, first_slot);
  const Rows rows = rows_of(p, n);
  const std::int64_t index = slot - first_slot(rows.begin, n);
  if (index < 0 || state_slot(p.args, n, false).absent) return {n, index, 0, 0};
  return chunk_of(rows, n, index);
}
// Of a walk over the chunks that are there.
__device__ inline unsigned chunks_of(const Params& p, std::int64_t n) {
  const Rows rows = rows_of(p, n);
  return state_slot(p.args, n, false).absent ? 0 : static_cast<unsigned>((rows.end - rows.begin + kC - 1) / kC);
}

// g in log2 units as a multiple of 2^-40, so that sums are exact in any order. 2^-160 is 0 in f32, subnormals included, so
// below -160 a gate closes; -inf does too.
inline constexpr double kGateUnit = 0x1p40;
__device__ inline long long fixed_log2(float g) {
  const double g2 = g * 1.4426950408889634;
  return __double2ll_rn((g2 < -160.0 ? -160.0 : g2) * kGateUnit);
}

// g and beta of a lane's kEach tokens as they stand in memory; past the valid rows the gate is 0 and so is beta.
template <int kEach>
struct RawGates {
  float g[kEach], beta[kEach];
};
template <int kEach>
__device__ RawGates<kEach> load_gates(const Args& a, std::int64_t begin, int rows, std::int64_t h) {
  RawGates<kEach> raw;
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    const int i = kEach * (threadIdx.x % 32) + e;
    const std::int64_t element = (begin + i) * a.HV + h;
    raw.g[e] = i < rows ? bits_to_f32(load_bits(a.g, a.gate_dtype, element), a.gate_dtype) : 0.0f;
    raw.beta[e] = i < rows ? bits_to_f32(load_bits(a.beta, a.beta_dtype, element), a.beta_dtype) : 0.0f;
  }
  return raw;
}
// Gates of valid rows from raw ones, where asked, of kChunks chunks at once: none waits for another.
template <int kChunks, int kEach>
__device__ void transform(const Args& a, const HeadGate& head, const int (&rows)[kChunks], RawGates<kEach> (&raw)[kChunks]) {
  if (a.transform == Transform::none) return;
  const auto all = [&](auto math) {
#pragma unroll
    for (int e = 0; e < kChunks * kEach; ++e) {
      float& x = raw[e / kEach].g[e % kEach];
      const float g = transform_gate<decltype(math)>(a, x, head);
      if (static_cast<int>(kEach * (threadIdx.x % 32)) + e % kEach < rows[e / kEach]) x = g;
    }
  };
  a.fast_math ? all(Fast{}) : all(Precise{});
}
// Those of one chunk, as they are summed.
template <int kEach>
__device__ RawGates<kEach> read_gates(const Args& a, std::int64_t begin, int rows, std::int64_t h) {
  RawGates<kEach> raw[1] = {load_gates<kEach>(a, begin, rows, h)};
  transform(a, head_gate(a, h), {rows}, raw);
  return raw[0];
}
// Of a lane's tokens: b_i as in Gates, beta, exp(b_i), exp(b_C - b_i).
template <int kEach>
struct GateSums {
  float hi[kEach], lo[kEach], beta[kEach], in[kEach], out[kEach];
};
// One warp: of a chunk of 32 kEach tokens and value head.
template <int kEach>
__device__ GateSums<kEach> sum_gates(const RawGates<kEach>& raw) {
  GateSums<kEach> of;
  long long g[kEach], sum = 0;  // sum: then of all tokens up to this lane's last
#pragma unroll
  for (int e = 0; e < kEach; ++e) {
    of.beta[e] = isnan(raw.g[e]) ? raw.g[e] : raw.beta[e];  // a NaN gate shows in what follows it
    sum += g[e] = fixed_log2(raw.g[e]);
  }
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const long long before = __shfl_up_sync(kAll, sum, step);
    if (static_cast<int>(threadIdx.x % 32) >= step) sum += before;
  }
  const long long last = __shfl_sync(kAll, sum, 31);
  constexpr float kUnit = static_cast<float>(1 / kGateUnit);
#pragma unroll
  for (int e = kEach - 1; e >= 0; --e) {
    const float big = static_cast<float>(sum);
    of.hi[e] = big * kUnit;
    of.lo[e] = static_cast<float>(sum - static_cast<long long>(big)) * kUnit;
    of.in[e] = exp2f(of.hi[e] + of.lo[e]);
    of.out[e] = exp2f(static_cast<float>(last - sum) * kUnit);
    sum -= g[e];
  }
  return of;
}
__device__ inline void store_pair(float (&to)[kC], const float (&pair)[2]) {
  reinterpret_cast<float2*>(to)[threadIdx.x % 32] = make_float2(pair[0], pair[1]);
}
__device__ inline GateSums<2> make_gates(const RawGates<2>& raw, Gates& gates) {
  const GateSums<2> of = sum_gates(raw);
  store_pair(gates.hi, of.hi);
  store_pair(gates.lo, of.lo);
  store_pair(gates.beta, of.beta);
  return of;
}
__device__ inline void make_gates(const RawGates<2>& raw, Gates& gates, Record& record) {
  const GateSums<2> of = make_gates(raw, gates);
  store_pair(record.beta, of.beta);
  store_pair(record.decay_in, of.in);
  store_pair(record.decay_out, of.out);
}

// One warp: a row to x / sqrt(sum x^2 + 1e-6) in f32, rounded to io, in place and to unit unless null. place(b) is where
// 16-byte block b of the row stands in shared memory.
template <class Io, int kD, class Place>
__device__ void normalise_row(Place place, Io* unit) {
  constexpr int kChannels = kD / 32;  // 2 or 4: a part of one 16-byte block
  const int lane = threadIdx.x % 32;
  auto* at = reinterpret_cast<Pack<Io, kChannels>*>(place(lane * kChannels / 8)) + lane % (8 / kChannels);
  Pack<Io, kChannels> pack = *at;
  const RowNorm norm = row_norm<Precise>([&](float down) {
    float sum = 0;
#pragma unroll
    for (const Io x : pack.at) sum = fmaf(to_f32(x) * down, to_f32(x) * down, sum);
#pragma unroll
    for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(kAll, sum, mask);
    return sum;
  });
#pragma unroll
  for (Io& x : pack.at) x = from_f32<Io>(to_f32(x) * norm.down * norm.r);
  *at = pack;
  if (unit != nullptr) *reinterpret_cast<Pack<Io, kChannels>*>(unit + lane * kChannels) = pack;
}
// Rows of a tile, and to unit ([T, HK, K], at this chunk's first row and head).
template <class Io, int kD>
__device__ void normalise(Io* tile, Io* unit, std::int64_t stride, int rows) {
  for (int row = threadIdx.x / 32; row < rows; row += kPrepareThreads / 32)
    normalise_row<Io, kD>([&](int block) { return reinterpret_cast<char*>(tile) + Tile<kD>::offset(row, block); },
                          unit + row * stride);
}

// P of block row w from q k^T.
template <class Matrix>
__device__ void store_P(const BlockRow& qk, const Gates& gates, int w, bool split, Matrix& P) {
  const Lane l;
  const int row = 16 * w + l.group;
  const Decays decays(gates, row);
#pragma unroll
  for (int j = 0; j < kBlocks; ++j) {
    if (j > w) break;
    float x[2][4];  // [row block][element of the row]
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int column = 16 * j + 8 * half + 2 * l.t;
      float decay[4];
      decays.of(gates, column, decay);
#pragma unroll
      for (int e = 0; e < 4; ++e) {
        const float value = qk[j][half][e] * decay[e];
        x[e / 2][2 * half + e % 2] = column + e % 2 <= row + 8 * (e / 2) ? value : 0.0f;
      }
    }
    float4 rows[2] = {make_float4(x[0][0], x[0][1], x[0][2], x[0][3]), make_float4(x[1][0], x[1][1], x[1][2], x[1][3])};
    store_block(P, w, j, rows, split);
  }
}

template <class Io, int kD>
__device__ void prepare_chunk(const Params& p, const Chunk& at, std::int64_t slot, std::int64_t hk,
                              PrepareSmem<Io, kD>& smem) {
  const Args& a = p.args;
  const int team = threadIdx.x / kTeamThreads, w = threadIdx.x / 32 % kBlocks;
  const std::int64_t first = (at.begin * a.HK + hk) * kD, stride = a.HK * kD;
  const std::int64_t group = a.HV / a.HK;
  Record* records = records_of<Record>(p) + slot * a.HV + hk * group;  // of the group's value heads

  const std::uint32_t k = shared_address(smem.k), q = shared_address(smem.q);
  Tile<kD>::template load<kC, kPrepareThreads>(k, static_cast<const Io*>(a.k) + first, stride, at.rows);
  Tile<kD>::template load<kC, kPrepareThreads>(q, static_cast<const Io*>(a.q) + first, stride, at.rows);
  ptx::cp_async_commit();
  const auto make_heads = [&](std::int64_t head) {  // gates of up to four heads from this one on
    if (team == 0 || head + w >= group) return;
    const std::int64_t h = hk * group + head + w;
    make_gates(read_gates<2>(a, at.begin, at.rows, h), smem.gates[w], records[head + w]);
  };
  make_heads(0);
  ptx::cp_async_wait<0>();
  __syncthreads();  // q, k and the first four heads' gates are there
  if (p.k_unit != nullptr) {
    normalise<Io, kD>(smem.k, static_cast<Io*>(p.k_unit) + first, stride, at.rows);
    normalise<Io, kD>(smem.q, static_cast<Io*>(p.q_unit) + first, stride, at.rows);
    __syncthreads();  // q and k are normalised
  }

  for (std::int64_t head = 0; head < group; ++head) {
    const int one = static_cast<int>(head % kBlocks);
    if (head > 0 && one == 0) {
      __syncthreads();  // the last four heads' gates have been read
      make_heads(head);
      __syncthreads();  // the next ones are there
    }
    BlockRow products;
    if (team == 0) {
      multiply_rows<Io, kD>(k, k, w, products);
      if (head > 0) ptx::barrier_sync<kTeamThreads>(1);  // the team has read the last head's factors
      store_A(products, smem.gates[one], w, smem.factors);
      __syncwarp();  // this warp's rows of A are there
      invert_diagonal(smem.factors, w);
      ptx::barrier_sync<kTeamThreads>(1);  // A and the inverses of its diagonal blocks are there
      solve_column(smem.factors, w, 1, p.split, records[head].Ainv, tap_of(p, at.n, at.index, hk * group + head));
    } else {
      multiply_rows<Io, kD>(q, k, w, products);
      store_P(products, smem.gates[one], w, p.split, records[head].P);
    }
  }
}

template <class Io, int kD, bool kPersistent>
__global__ void __launch_bounds__(kPrepareThreads, 3) prepare(const __grid_constant__ Params p) {
  extern __shared__ __align__(256) char shared[];
  auto& smem = *reinterpret_cast<PrepareSmem<Io, kD>*>(shared);
  const auto HK = static_cast<unsigned>(p.args.HK);
  if constexpr (kPersistent) {
    __shared__ Walk walk;
    walk.start();
    while (walk.next(p.args, HK, [&](unsigned n) { return chunks_of(p, n); })) {
      const Rows rows = rows_of(p, walk.n);
      prepare_chunk<Io, kD>(p, chunk_of(rows, walk.n, walk.unit), first_slot(rows.begin, walk.n) + walk.unit, walk.part,
                            smem);
    }
  } else {
    const std::int64_t slot = blockIdx.x / HK;
    const Chunk at = find_chunk(p, slot);
    if (at.rows > 0) prepare_chunk<Io, kD>(p, at, slot, blockIdx.x % HK, smem);
  }
}

}  // namespace deltagauge::kernels::gdn::chunk_sm80
