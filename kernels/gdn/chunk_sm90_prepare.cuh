// gdn.chunk_sm90, first of its kernels: Record90 of every chunk (chunk_sm90_factors.cuh), or a part of it.
// grid: a block a multiprocessor, some or all of them        block: teams of warps, each on its own: it takes one item,
// slot * HK + key head, after the other, and one value head of the group after the other. Of a value head
//   X   two warps   D_0 and D_1              P   two warps   rows 32 .. 47 and 48 .. 63, columns 0 .. 31
//       two warps   A_10, then X_10              two warps   the diagonal halves
// and the last warps of a team load the next item's k and q as soon as the last head has multiplied its own, and make its
// gates: those of P, of X alone two more.
// shared: a PrepareSmem90 a team, with inverse norms of q and k when asked.
// The kernels behind may start once every block has (griddepcontrol); they find an item's X where there[item] is 1, and P,
// where one launch makes all, with it. A launch of P alone starts so itself.
#pragma once
#include "kernels/device/ptx/flag.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/gdn/chunk_sm90_factors.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

enum class Part { all, X, P };  // X: with the gates of a record

template <Part kPart>
struct Team {
  static constexpr bool X = kPart != Part::P, P = kPart != Part::X;
  static constexpr int loaders = P ? 4 : 2, warps = (X ? 4 : 0) + loaders, threads = 32 * warps;
  static constexpr int count = X && P ? 3 : 4;  // of a block
};

struct KeySide {
  alignas(1024) Inverse90 X;
  float transposed[kHalf * kHalf];  // D_0^T
  HalfBlocks blocks[2];
};
template <class Io, int kD>
struct QuerySide {
  Tokens90<Io, kD> q;
  Masked90 P;
};
struct NoSide {};
template <class Io, int kD, Part kPart>
struct alignas(1024) PrepareSmem90 {
  Tokens90<Io, kD> k;
  std::conditional_t<Team<kPart>::X, KeySide, NoSide> of_k;
  std::conditional_t<Team<kPart>::P, QuerySide<Io, kD>, NoSide> of_q;
  ChunkGates gates[4];  // of up to four value heads
  // Of the item and the next one, in turn, as they are asked for.
  InverseNorms<kC> norms[2];
  std::uint32_t scaled[2][2][Team<kPart>::loaders];  // of k, of q: whether rows of a loading warp are
  Chunk chunks[2];                                   // the item's and the next one's, in turn
};

// The team's; each stands at one of three, so that teams never meet.
template <int kThreads>
struct TeamBarriers {
  static constexpr int kCount = 3;
  int first;
  __device__ void all() const { ptx::barrier_sync<kThreads>(first); }
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
template <int kThreads>
__device__ void tap_inverse(const Inverse90& X, float* tap) {
  for (int at = threadIdx.x % kThreads; at < kC * kC; at += kThreads) {
    const int i = at / kC, j = at % kC;
    const float* half = i < kHalf ? X.D0 : j < kHalf ? X.X10 : X.D1;
    tap[at] = i < kHalf && j >= kHalf ? 0.0f : half[place(i % kHalf, j % kHalf)];
  }
}

// By kThreads threads.
template <int kThreads, class T>
__device__ void clear(T& tiles) {
  auto* at = reinterpret_cast<uint4*>(&tiles);
  for (int i = threadIdx.x % kThreads; i < static_cast<int>(sizeof tiles / 16); i += kThreads) at[i] = uint4{};
}

// Warp w: its part of a value head's factors. products: k k^T or q k^T of it, times inverse norms where kNorms; made where
// fresh, else those of the value head before. multiplied() stands behind the last use of k and q, and in front of the first
// write to the factors.
template <bool kNorms, class Io, int kD, Part kPart, class After>
__device__ void make_factors(PrepareSmem90<Io, kD, kPart>& smem, const ChunkGates& gates, const InverseNorms<kC>& norms,
                             float scale, int w, const TeamBarriers<Team<kPart>::threads>& barriers, HalfProducts& products,
                             bool fresh, After multiplied) {
  auto& row_products = reinterpret_cast<RowProducts&>(products);
  const Io* k = smem.k.tiles[0];
  const float *k_norms = norms.k, *q_norms = norms.q;
  constexpr int kSecond = kHalf * 64, kRow = 16 * 64;  // elements to the second half of a tile, and to its next 16 rows
  constexpr int kFirstOfP = Team<kPart>::X ? 4 : 0;
  const int r = w % 2, first = kHalf * r, below = kHalf + 16 * r;  // first row
  const HalfGates& half = gates.half[r];
  if constexpr (Team<kPart>::X) {
    KeySide& of = smem.of_k;
    if (w < 2) {
      if (fresh) {
        multiply_half<Io, kD, false>(k + r * kSecond, nullptr, products);
        if constexpr (kNorms) to_unit(products, k_norms + first, k_norms + first);
      }
      multiplied();
      make_half_X(products, half, {half.hi, half.lo}, of.blocks[r], r == 0 ? of.X.D0 : of.X.D1,
                  r == 0 ? of.transposed : nullptr);
      return barriers.inverses_there();
    }
    if (w < 4) {
      if (fresh) {
        multiply_row<Io, kD>(k + kSecond + r * kRow, k, row_products);
        if constexpr (kNorms) to_unit(row_products, k_norms + below, k_norms);
      }
      multiplied();
      make_below(row_products, gates, gates.half[1].beta + 16 * r, scale, r, of.X.X10);
      barriers.inverses();
      return make_X10(of.X.X10, of.transposed, of.X.D1, r, [&] { barriers.X10(); });
    }
  }
  if constexpr (Team<kPart>::P) {
    const Io* q = smem.of_q.q.tiles[0];
    Masked90& P = smem.of_q.P;
    if (w < kFirstOfP + 2) {
      if (fresh) {
        multiply_row<Io, kD>(q + kSecond + r * kRow, k, row_products);
        if constexpr (kNorms) to_unit(row_products, q_norms + below, k_norms);
      }
      multiplied();
      make_below(row_products, gates, nullptr, scale, r, P.P0 + kHalf * kHalf);
    } else {
      if (fresh) {
        multiply_half<Io, kD, true>(k + r * kSecond, q + r * kSecond, products);
        if constexpr (kNorms) to_unit(products, q_norms + first, k_norms + first);
      }
      multiplied();
      make_half_P(
          products, half, {half.hi, half.lo}, [&](int) { return scale; }, r == 0 ? P.P0 : P.P1);
    }
  } else {
    multiplied();
  }
}

// kNorms: q and k are to be normalised.
template <class Io, int kD, Part kPart, bool kNorms>
__global__ void __launch_bounds__(Team<kPart>::count* Team<kPart>::threads, 1) prepare(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Of = Team<kPart>;
  extern __shared__ __align__(1024) char shared[];
  ptx::launch_dependents();
  const int team = __shfl_sync(kAll, threadIdx.x / Of::threads, 0), w = __shfl_sync(kAll, threadIdx.x / 32 % Of::warps, 0);
  constexpr int kFirst = Of::warps - Of::loaders;                                      // of those that load
  const bool loads = w >= kFirst, elected = threadIdx.x % Of::threads == 32 * kFirst;  // elected: the thread that stores
  auto& smem = reinterpret_cast<PrepareSmem90<Io, kD, kPart>*>(shared)[team];
  using Barriers = TeamBarriers<Of::threads>;
  const Barriers barriers{1 + Barriers::kCount * team};
  const Args& a = p.args;
  const unsigned HK = static_cast<unsigned>(a.HK), items = static_cast<unsigned>(p.slots) * HK;
  const std::int64_t stride = a.HK * kD, group = a.HV / a.HK;
  const auto first_of = [&](const Chunk& at, unsigned of) { return (at.begin * a.HK + of % HK) * kD; };
  const auto records_at = [&](unsigned of) {  // of the group's value heads
    return records_of<Record90>(p) + of / HK * a.HV + of % HK * group;
  };
  const auto scaled = [&](int of, int turn) {  // of: 0 k, 1 q
    std::uint32_t any = 0;
    for (const std::uint32_t rows : smem.scaled[turn][of]) any |= rows;
    return any != 0;
  };
  unsigned stored = items;  // the item whose records are on their way to global memory
  const auto announce = [&](unsigned next) {
    if (!Of::X || !elected) return;
    if (stored < items) {
      ptx::bulk_store_wait_done();
      ptx::release(&p.there[stored]);
    }
    stored = next;
  };

  // Above the diagonals nothing is ever written.
  if constexpr (Of::X) clear<Of::threads>(smem.of_k.X);
  if constexpr (Of::P) clear<Of::threads>(smem.of_q.P);
  // In front of the first item there is none, whose one step loads the first. The code of a step stands here once: it is as
  // long as instructions can be held close by.
  constexpr int kEach = 4 / Of::loaders;
  GateSums<2> sums[kEach] = {};  // of the value heads of the coming four that this warp makes gates of
  bool sums_there[kEach] = {};   // where there are such
  HalfProducts products;         // alike for all value heads of a group
  unsigned item = items, next = blockIdx.x + gridDim.x * team;
  for (int turn = 1;; turn ^= 1) {
    Chunk& at = smem.chunks[turn];
    int rows = 0;
    std::int64_t heads = 1;  // steps
    for (std::int64_t head = 0; head < heads; ++head) {
      if (head % 4 == 0 && item < items) {
        if (loads) {
#pragma unroll
          for (int e = 0; e < kEach; ++e)
            if (sums_there[e]) store_gates(sums[e], smem.gates[w - kFirst + Of::loaders * e]);
          ptx::cp_async_wait<0>();
          if (elected) ptx::bulk_store_wait();
        }
        barriers.all();  // the chunk, q, k and the coming four heads' gates are there, the last factors have been read
        if (head == 0) {
          rows = at.rows;
          if (rows > 0) heads = group;
          if (kNorms && rows > 0 && w < 4) {  // rows 32 (w % 2) .. of k, of q
            const int row = 32 * (w % 2) + threadIdx.x % 32, side = w / 2;
            const std::int64_t own = first_of(at, item) + row * stride;
            if (Of::X && side == 0 && row < rows && scaled(0, turn)) smem.k.store(row, static_cast<Io*>(p.k_unit) + own);
            if constexpr (Of::P)
              if (side == 1 && row < rows && scaled(1, turn)) smem.of_q.q.store(row, static_cast<Io*>(p.q_unit) + own);
          }
        }
        if (kNorms && loads) {
#pragma unroll
          for (int e = 0; e < kEach; ++e) {
            if (!sums_there[e]) continue;
            VectorsOf<kC>& vectors = records_at(item)[head + w - kFirst + Of::loaders * e].vectors;
            store_vectors<Of::X, Of::P>(sums[e], a.scale, &smem.norms[turn], vectors);
            if (threadIdx.x % 32 != 0) continue;
            if (Of::X) vectors.k_scaled = scaled(0, turn);
            if (Of::P) vectors.q_scaled = scaled(1, turn);
          }
        }
      }
      if (rows > 0)
        make_factors<kNorms>(smem, smem.gates[head % 4], smem.norms[turn], a.scale, w, barriers, products,
                             kPart == Part::all || head == 0, [&] {
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
            smem.k.template load<32 * Of::loaders>(static_cast<const Io*>(a.k) + first, stride, chunk.rows);
            if constexpr (Of::P)
              smem.of_q.q.template load<32 * Of::loaders>(static_cast<const Io*>(a.q) + first, stride, chunk.rows);
          }
          ptx::cp_async_commit();
        }
#pragma unroll
        for (int e = 0; e < kEach; ++e) {
          const std::int64_t own = (last ? 0 : head + 1) + w - kFirst + Of::loaders * e, h = of % HK * group + own;
          sums_there[e] = chunk.rows > 0 && own < group;
          if (!sums_there[e]) continue;
          sums[e] = sum_gates(read_gates<2>(a, chunk.begin, chunk.rows, h));
          if constexpr (!kNorms) store_vectors<Of::X, Of::P>(sums[e], a.scale, nullptr, records_at(of)[own].vectors);
        }
        if (kNorms && last && chunk.rows > 0) {
          constexpr int kLoading = 32 * Of::loaders;
          auto& norms = smem.norms[turn ^ 1];
          auto& scaled = smem.scaled[turn ^ 1];
          ptx::cp_async_wait<0>();
          const bool k = smem.k.template norms<kLoading>(norms.k);
          if (threadIdx.x % 32 == 0) scaled[0][w - kFirst] = k;
          if constexpr (Of::P) {
            const bool q = smem.of_q.q.template norms<kLoading>(norms.q);
            if (threadIdx.x % 32 == 0) scaled[1][w - kFirst] = q;
          }
        }
      }
      if (rows <= 0) continue;
      ptx::fence_async_shared();
      barriers.all();  // the head's factors are there, its gates have been read
      Record90& record = records_at(item)[head];
      if constexpr (Of::P)
        if (elected) ptx::bulk_store(&record.P, &smem.of_q.P, sizeof record.P);
      if constexpr (Of::X) {
        float* tap = tap_of(p, at.n, at.index, item % HK * group + head);
        if (tap != nullptr) tap_inverse<Of::threads>(smem.of_k.X, tap);
        if (elected) ptx::bulk_store(&record.X, &smem.of_k.X, sizeof record.X);
        if (tap != nullptr) barriers.all();  // the tap has read the factors
      }
    }
    if (next >= items) break;
    item = next;
    next += Of::count * gridDim.x;
  }
  announce(items);
  if (elected) ptx::bulk_store_wait_done();
  if constexpr (kPart == Part::P) ptx::wait_for_dependency();  // so that what follows finds the launch of X ended, too
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
