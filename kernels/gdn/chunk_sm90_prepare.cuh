// gdn.chunk_sm90, first of two kernels: Record90 of every chunk (chunk_sm90_factors.cuh).
// grid: a block a multiprocessor, some or all of them        block: three teams of 8 warps, each on its own: it takes one
// item, slot * HK + key head, after the other, and one value head of the group after the other. Of a value head
//   warps 0, 1   D_0 and D_1                  warps 4, 5   rows 32 .. 47 and 48 .. 63 of P, columns 0 .. 31
//   warps 2, 3   A_10, then X_10              warps 6, 7   the diagonal halves of P
// and warps 4 to 7 load the next item's k and q as soon as the last head has multiplied its own, and make its gates.
// shared: a PrepareSmem90 a team; q and k are normalised there first when asked.
// The states may start once every block has (griddepcontrol); they find an item's records where there[item] is 1.
#pragma once
#include "kernels/device/ptx/flag.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/gdn/chunk_sm90_factors.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kTeams = 3, kTeamWarps = 8, kThreads90 = 32 * kTeamWarps;  // of a team

template <class Io, int kD>
struct alignas(1024) PrepareSmem90 {
  Keys90<Io, kD> keys;
  alignas(1024) Factors90 out;
  float transposed[kHalf * kHalf];  // D_0^T
  HalfBlocks blocks[2];
  ChunkGates gates[4];  // of up to four value heads
  Chunk chunks[2];      // the item's and the next one's, in turn
};

// The team's; each stands at one of three, so that teams never meet.
struct TeamBarriers {
  static constexpr int kCount = 3;
  int first;
  __device__ void all() const { ptx::barrier_sync<kThreads90>(first); }
  __device__ void inverses_there() const { ptx::barrier_arrive<128>(first + 1); }  // warps 0, 1: D_0 and D_1
  __device__ void inverses() const { ptx::barrier_sync<128>(first + 1); }          // warps 2, 3: and A_10
  __device__ void X10() const { ptx::barrier_sync<64>(first + 2); }
};

// One warp: gates of a chunk and value head.
__device__ inline void store_gates(const GateSums<2>& of, ChunkGates& gates) {
  const int lane = threadIdx.x % 32, h = lane / 16, first = 2 * (lane % 16);
  HalfGates& half = gates.half[h];
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int i = first + e;
    half.hi[i] = of.hi[e];
    half.lo[i] = of.lo[e];
    half.beta[i] = of.beta[e];
    (i < 16 ? half.column[i] : half.row[i - 16]) = from_middle(of, e, 16 * h + 8, i < 16);
    (h == 0 ? gates.column[i] : gates.row[i]) = from_middle(of, e, 16, h == 0);
  }
}

// For debugging: X, by a team.
__device__ inline void tap_inverse(const Factors90& out, float* tap) {
  for (int at = threadIdx.x % kThreads90; at < kC * kC; at += kThreads90) {
    const int i = at / kC, j = at % kC;
    const float* X = i < kHalf ? out.D0 : j < kHalf ? out.X10 : out.D1;
    tap[at] = i < kHalf && j >= kHalf ? 0.0f : X[place(i % kHalf, j % kHalf)];
  }
}

// Warp w: its part of a value head's factors. multiplied() stands behind its last use of k and q, and in front of its first
// write to out.
template <class Io, int kD, class After>
__device__ void make_factors(PrepareSmem90<Io, kD>& smem, const ChunkGates& gates, float scale, int w,
                             const TeamBarriers& barriers, After multiplied) {
  Factors90& out = smem.out;
  const Io *k = smem.keys.k[0], *q = smem.keys.q[0];
  constexpr int kSecond = kHalf * 64, kRow = 16 * 64;  // elements to the second half of a tile, and to its next 16 rows
  if (w < 2) {
    make_half_X<Io, kD>(k + w * kSecond, gates.half[w], smem.blocks[w], w == 0 ? out.D0 : out.D1,
                        w == 0 ? smem.transposed : nullptr, multiplied);
    barriers.inverses_there();
  } else if (w < 6) {
    const bool below = w < 4;  // A_10
    const int r = w % 2;
    make_below<Io, kD>((below ? k : q) + kSecond + r * kRow, k, gates, below ? gates.half[1].beta + 16 * r : nullptr, scale,
                       r, below ? out.X10 : out.P0 + kHalf * kHalf, multiplied);
    if (!below) return;
    barriers.inverses();
    make_X10(out.X10, smem.transposed, out.D1, r, [&] { barriers.X10(); });
  } else {
    const int h = w - 6;
    make_half_P<Io, kD>(k + h * kSecond, q + h * kSecond, gates.half[h], scale, h == 0 ? out.P0 : out.P1, multiplied);
  }
}

template <class Io, int kD>
__global__ void __launch_bounds__(kTeams* kThreads90, 1) prepare(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  ptx::launch_dependents();
  const int team = __shfl_sync(kAll, threadIdx.x / kThreads90, 0), w = __shfl_sync(kAll, threadIdx.x / 32 % kTeamWarps, 0);
  const bool loads = w >= 4, elected = threadIdx.x % kThreads90 == 32 * 4;  // elected: the thread that stores
  auto& smem = reinterpret_cast<PrepareSmem90<Io, kD>*>(shared)[team];
  const TeamBarriers barriers{1 + TeamBarriers::kCount * team};
  const Args& a = p.args;
  const unsigned HK = static_cast<unsigned>(a.HK), items = static_cast<unsigned>(p.slots) * HK;
  const std::int64_t stride = a.HK * kD, group = a.HV / a.HK;
  const auto first_of = [&](const Chunk& at, unsigned of) { return (at.begin * a.HK + of % HK) * kD; };
  const auto records_at = [&](unsigned of) {  // of the group's value heads
    return records_of<Record90>(p) + of / HK * a.HV + of % HK * group;
  };
  unsigned stored = items;  // the item whose records are on their way to global memory
  const auto announce = [&](unsigned next) {
    if (!elected) return;
    if (stored < items) {
      ptx::bulk_store_wait_done();
      ptx::release(&p.there[stored]);
    }
    stored = next;
  };

  auto* zero = reinterpret_cast<uint4*>(&smem.out);  // above the diagonals nothing is ever written
  for (int i = threadIdx.x % kThreads90; i < static_cast<int>(sizeof(smem.out) / 16); i += kThreads90) zero[i] = uint4{};
  // In front of the first item there is none, whose one step loads the first. The code of a step stands here once: it is as
  // long as instructions can be held close by.
  GateSums<2> sums = {};  // of the value head of the coming four that this warp makes gates of, if there is one
  bool sums_there = false;
  unsigned item = items, next = blockIdx.x + gridDim.x * team;
  for (int turn = 1;; turn ^= 1) {
    Chunk& at = smem.chunks[turn];
    int rows = 0;
    std::int64_t heads = 1;  // steps
    for (std::int64_t head = 0; head < heads; ++head) {
      if (head % 4 == 0 && item < items) {
        if (loads) {
          if (sums_there) store_gates(sums, smem.gates[w - 4]);
          ptx::cp_async_wait<0>();
          if (elected) ptx::bulk_store_wait();
        }
        barriers.all();  // the chunk, q, k and the coming four heads' gates are there, the last factors have been read
        if (head == 0) {
          rows = at.rows;
          if (rows > 0) heads = group;
          if (rows > 0 && p.k_unit != nullptr) {
            const std::int64_t first = first_of(at, item);
            smem.keys.normalise(w, kTeamWarps, rows, static_cast<Io*>(p.k_unit) + first, static_cast<Io*>(p.q_unit) + first,
                                stride);
            barriers.all();  // q and k are normalised
          }
        }
      }
      if (rows > 0)
        make_factors(smem, smem.gates[head % 4], a.scale, w, barriers, [&] {
          if (elected) ptx::bulk_store_wait();
          barriers.all();  // the head has multiplied, the last one's factors have been read
        });
      if (head == 0 && item < items) announce(item);  // an empty one, too: where offsets decrease, states may wait for it
      const bool last = head + 1 == heads;
      if (loads && (last ? next < items : head % 4 == 3)) {
        const unsigned of = last ? next : item;
        Chunk chunk = at;
        if (last) {
          chunk = find_chunk(p, of / HK);
          if (elected) smem.chunks[turn ^ 1] = chunk;
          if (chunk.rows > 0) {
            const std::int64_t first = first_of(chunk, of);
            smem.keys.template load<kThreads90 / 2>(static_cast<const Io*>(a.k) + first, static_cast<const Io*>(a.q) + first,
                                                    stride, chunk.rows);
          }
          ptx::cp_async_commit();
        }
        const std::int64_t own = (last ? 0 : head + 1) + w - 4, h = of % HK * group + own;
        sums_there = chunk.rows > 0 && own < group;
        if (sums_there) {
          sums = sum_gates(transformed(a, chunk.rows, h, load_gates<2>(a, chunk.begin, chunk.rows, h)));
          store_vectors(sums, a.scale, records_at(of)[own].vectors);
        }
      }
      if (rows <= 0) continue;
      ptx::fence_async_shared();
      barriers.all();  // the head's factors are there, its gates have been read
      float* tap = tap_of(p, at.n, at.index, item % HK * group + head);
      if (tap != nullptr) tap_inverse(smem.out, tap);
      if (elected) ptx::bulk_store(&records_at(item)[head], &smem.out, sizeof(Factors90));
      if (tap != nullptr) barriers.all();  // the tap has read the factors
    }
    if (next >= items) break;
    item = next;
    next += kTeams * gridDim.x;
  }
  announce(items);
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
