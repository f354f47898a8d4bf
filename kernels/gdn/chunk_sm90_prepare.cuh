// gdn.chunk_sm90, first of its kernels: Record90 of every chunk (chunk_sm90_factors.cuh), or a part of it.
// grid: a block a multiprocessor, some or all of them        block: teams of warps, each on its own: it takes one item,
// slot * HK + key head, after the other, and one value head of the group after the other. Of a value head
//   X   two warps   D_0 and D_1              P   two warps   rows 32 .. 47 and 48 .. 63, columns 0 .. 31
//       two warps   A_10, then X_10              two warps   the diagonal halves
// and the last four warps of a team load the next item's k and q as soon as the last head has multiplied its own, and make
// its gates.
// shared: a PrepareSmem90 a team
// The kernels behind may start once every block has (griddepcontrol); they find an item's X where there[item] says so, and
// P, where one launch makes all, with it. A launch of P alone starts so itself.
#pragma once
#include "kernels/device/ptx/flag.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/gdn/chunk_sm90_factors.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kLoaders = 4;  // warps of a team that load, and make gates of a value head each

enum class Part { all, X, P };  // X: with the gates of a record

template <Part kPart>
struct Team {
  static constexpr bool X = kPart != Part::P, P = kPart != Part::X;
  static constexpr int warps = X && P ? 8 : 4, threads = 32 * warps;
  static constexpr int count = X && P ? 3 : X ? 5 : 4;  // of a block
};

struct KeySide {
  Inverse90 X;
  float transposed[kHalf * kHalf];  // D_0^T
  HalfBlocks blocks[2];
  float norms[kC];  // 1 / |k_i|, where k is to be normalised
};
template <class Io, int kD>
struct QuerySide {
  Tokens90<Io, kD> q;
  Masked90 P;
  float norms[kC];
};
struct NoSide {};
template <class Io, int kD, Part kPart>
struct alignas(1024) PrepareSmem90 {
  Tokens90<Io, kD> k;
  std::conditional_t<Team<kPart>::X, KeySide, NoSide> of_k;
  std::conditional_t<Team<kPart>::P, QuerySide<Io, kD>, NoSide> of_q;
  ChunkGates gates[4];  // of up to four value heads
  Chunk chunks[2];      // the item's and the next one's, in turn
  // Where q and k are to be normalised:
  std::uint32_t past[2][2];  // of k, of q: whether rows of a half must be scaled
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

// One warp: the sums again.
__device__ inline GateSums<2> sums_of(const ChunkGates& gates) {
  GateSums<2> of;
  const float end = gates.half[1].hi[kHalf - 1], rest = gates.half[1].lo[kHalf - 1];
#pragma unroll
  for (int e = 0; e < 2; ++e) {
    const int lane = ptx::lane_id(), i = 2 * (lane % 16) + e;
    const HalfGates& half = gates.half[lane / 16];
    of.hi[e] = half.hi[i], of.lo[e] = half.lo[i], of.beta[e] = half.beta[i];
    of.in[e] = ptx::ex2(of.hi[e] + of.lo[e]);
    of.out[e] = ptx::ex2((end - of.hi[e]) + (rest - of.lo[e]));
  }
  return of;
}

// For debugging: X, by a team. norms: 1 / |k_i|, or null: k is used as it is.
template <int kThreads>
__device__ void tap_inverse(const Inverse90& X, const float* norms, float* tap) {
  for (int at = threadIdx.x % kThreads; at < kC * kC; at += kThreads) {
    const int i = at / kC, j = at % kC;
    const float* half = i < kHalf ? X.D0 : j < kHalf ? X.X10 : X.D1;
    const float x = i < kHalf && j >= kHalf ? 0.0f : half[place(i % kHalf, j % kHalf)];
    tap[at] = norms != nullptr && i != j ? x * norms[j] / norms[i] : x;
  }
}

// By kThreads threads.
template <int kThreads, class T>
__device__ void clear(T& tiles) {
  auto* at = reinterpret_cast<uint4*>(&tiles);
  for (int i = threadIdx.x % kThreads; i < static_cast<int>(sizeof tiles / 16); i += kThreads) at[i] = uint4{};
}

// What a warp of a team multiplies and makes.
template <Part kPart>
struct Role {
  bool of_X, of_P, diagonal;  // else below the halves
  int r;                      // the half, or rows 16 r .. of the second one
  __device__ explicit Role(int w) {
    constexpr int kFirstOfP = Team<kPart>::X ? 4 : 0;
    of_X = Team<kPart>::X && w < 4, of_P = Team<kPart>::P && !of_X;
    diagonal = of_X ? w < 2 : w >= kFirstOfP + 2;
    r = w % 2;
  }
};
// A warp's products k k^T or q k^T of an item, alike for all value heads of the group.
template <class Io, int kD, Part kPart>
__device__ void multiply(const PrepareSmem90<Io, kD, kPart>& smem, const Role<kPart>& role, HalfProducts& products) {
  auto& row_products = reinterpret_cast<RowProducts&>(products);
  const Io* k = smem.k.tiles[0];
  constexpr int kSecond = kHalf * 64, kRow = 16 * 64;  // elements to the second half of a tile, and to its next 16 rows
  const int half = role.r * kSecond, below = kSecond + role.r * kRow;
  if (role.of_X)
    role.diagonal ? multiply_half<Io, kD, false>(k + half, nullptr, products)
                  : multiply_row<Io, kD>(k + below, k, row_products);
  if constexpr (Team<kPart>::P) {
    const Io* q = smem.of_q.q.tiles[0];
    if (role.of_P)
      role.diagonal ? multiply_half<Io, kD, true>(k + half, q + half, products)
                    : multiply_row<Io, kD>(q + below, k, row_products);
  }
}
// Inverse norms of an item by the warps of diagonal halves: of k, which is in k k^T, and of q. again: once rows have been
// scaled.
template <class Io, int kD, Part kPart>
__device__ void make_norms(PrepareSmem90<Io, kD, kPart>& smem, const Role<kPart>& role, const HalfProducts& products,
                           bool again) {
  if (!role.diagonal) return;
  const auto make = [&](const auto& first, const auto& second, float* norms, std::uint32_t& past) {
    const bool any = inverse_norms<Io>(first, second, again, norms + kHalf * role.r);
    if (ptx::lane_id() == 0 && !again) past = any;
  };
  if constexpr (Team<kPart>::X)
    if (role.of_X) make(products[0], products[2], smem.of_k.norms, smem.past[0][role.r]);
  if constexpr (Team<kPart>::P) {
    if (!role.of_P) return;
    Squares<2> squares;
    square_rows<Io, kD>(smem.of_q.q.tiles[0] + role.r * kHalf * 64, squares);
    make(squares[0], squares[1], smem.of_q.norms, smem.past[1][role.r]);
  }
}
// A warp's part of a value head's factors from its products.
template <bool kNorms, class Io, int kD, Part kPart>
__device__ void make_factors(PrepareSmem90<Io, kD, kPart>& smem, const ChunkGates& gates, float scale,
                             const Role<kPart>& role, const TeamBarriers<Team<kPart>::threads>& barriers,
                             const HalfProducts& products) {
  auto& row_products = reinterpret_cast<const RowProducts&>(products);
  const int r = role.r;
  const HalfGates& half = gates.half[r];
  if constexpr (Team<kPart>::X) {
    KeySide& of = smem.of_k;
    const auto beta = [&](int i) {
      const float norm = kNorms ? of.norms[i] : 1.0f;
      return norm * norm * gates.half[i / kHalf].beta[i % kHalf];
    };
    if (role.of_X && role.diagonal) {
      make_half_X(
          products, half, [&](int i) { return beta(kHalf * r + i); }, of.blocks[r], r == 0 ? of.X.D0 : of.X.D1,
          r == 0 ? of.transposed : nullptr);
      return barriers.inverses_there();
    }
    if (role.of_X) {
      make_below(
          row_products, gates, [&](int i) { return beta(kHalf + 16 * r + i); }, r, of.X.X10);
      barriers.inverses();
      return make_X10(of.X.X10, of.transposed, of.X.D1, r, [&] { barriers.X10(); });
    }
  }
  if constexpr (Team<kPart>::P) {
    Masked90& P = smem.of_q.P;
    const auto scale_of = [&](int i) { return kNorms ? scale * smem.of_q.norms[i] : scale; };
    if (role.diagonal)
      make_half_P(
          products, half, [&](int i) { return scale_of(kHalf * r + i); }, r == 0 ? P.P0 : P.P1);
    else
      make_below(
          row_products, gates, [&](int i) { return scale_of(kHalf + 16 * r + i); }, r, P.P0 + kHalf * kHalf);
  }
}

// kNorms: q and k are to be normalised.
template <class Io, int kD, Part kPart, bool kNorms>
__global__ void __launch_bounds__(Team<kPart>::count* Team<kPart>::threads, 1) prepare(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  using Of = Team<kPart>;
  extern __shared__ __align__(1024) char shared[];
  const int team = __shfl_sync(kAll, threadIdx.x / Of::threads, 0), w = __shfl_sync(kAll, threadIdx.x / 32 % Of::warps, 0);
  constexpr int kFirst = Of::warps - kLoaders;  // of those that load
  const Role<kPart> role(w);
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
  unsigned stored = items;                          // the item whose records are on their way to global memory
  std::uint32_t of_stored = kThere, said = kThere;  // of it and of the item
  const auto announce = [&](unsigned next) {
    if (!Of::X || !elected) return;
    if (stored < items) {
      ptx::bulk_store_wait_done();
      ptx::release(&p.there[stored], of_stored);
    }
    stored = next, of_stored = said;
  };

  unsigned item = items, next = blockIdx.x + gridDim.x * team;
  // Those behind must not find old flags, so they may start once all are clear. Who clears a flag sets it.
  if (Of::X && elected)
    for (unsigned i = next; i < items; i += Of::count * gridDim.x) p.there[i] = 0;
  // Above the diagonals nothing is ever written.
  if constexpr (Of::X) clear<Of::threads>(smem.of_k.X);
  if constexpr (Of::P) clear<Of::threads>(smem.of_q.P);
  if constexpr (Of::X) __syncthreads();  // the block's flags are clear
  if (threadIdx.x == 0) {
    ptx::fence_global();
    ptx::launch_dependents();
  }
  // In front of the first item there is none, whose one step loads the first. The code of a step stands here once: it is as
  // long as instructions can be held close by.
  GateSums<2> sums = {};    // of the value head of the coming four that this warp makes gates of
  bool sums_there = false;  // where there is such
  HalfProducts products;    // alike for all value heads of a group
  std::uint32_t seen = 0;   // P alone: what X said of the next item
  for (int turn = 1;; turn ^= 1) {
    Chunk& at = smem.chunks[turn];
    int rows = 0;
    std::int64_t heads = 1;  // steps
    for (std::int64_t head = 0; head < heads; ++head) {
      if (head % 4 == 0 && item < items) {
        if (loads) {
          if (sums_there) store_gates(sums, smem.gates[w - kFirst]);
          ptx::cp_async_wait<0>();
          if (elected) ptx::bulk_store_wait();
        }
        barriers.all();  // the chunk, q, k and the coming four heads' gates are there, the last factors have been read
        if (head == 0) {
          rows = at.rows;
          if (rows > 0) heads = group;
          said = kThere;
        }
      }
      if (rows > 0) {
        const bool fresh = kPart == Part::all || head == 0;
        for (bool again = false;; again = true) {
          if (fresh) multiply<Io, kD>(smem, role, products);
          if (kNorms && head == 0) make_norms<Io, kD>(smem, role, products, again);
          if (elected) ptx::bulk_store_wait();
          barriers.all();  // the head has multiplied, the last one's factors have been read
          if (!kNorms || head > 0 || again) break;
          const bool k_past = Of::X && (smem.past[0][0] | smem.past[0][1]) != 0,
                     q_past = Of::P && (smem.past[1][0] | smem.past[1][1]) != 0;
          said = kThere | (k_past ? kScaledK : 0) | (q_past ? kScaledQ : 0);
          if (said == kThere) break;
          if (!Of::X && elected) ptx::release(&p.there[item], kScaledQ);
          const std::int64_t own = first_of(at, item);
          if constexpr (Of::X)
            if (k_past) smem.k.template scale<Of::threads>(smem.of_k.norms, rows, static_cast<Io*>(p.k_unit) + own, stride);
          if constexpr (Of::P)
            if (q_past)
              smem.of_q.q.template scale<Of::threads>(smem.of_q.norms, rows, static_cast<Io*>(p.q_unit) + own, stride);
          barriers.all();  // such rows are scaled
        }
        if constexpr (kNorms) {
          const float *k_norms = nullptr, *q_norms = nullptr;
          if constexpr (Of::X) k_norms = smem.of_k.norms;
          if constexpr (Of::P) q_norms = smem.of_q.norms;
          if (loads && head % 4 == 0 && sums_there)
            store_vectors<Of::X, Of::P>(sums_of(smem.gates[w - kFirst]), a.scale, k_norms, q_norms,
                                        records_at(item)[head + w - kFirst].vectors);
        }
        make_factors<kNorms>(smem, smem.gates[head % 4], a.scale, role, barriers, products);
      }
      if (head == 0 && item < items) announce(item);  // an empty one, too: where offsets decrease, states may wait for it
      if (kNorms && !Of::X && head == 0 && next < items) seen = *static_cast<const volatile std::uint32_t*>(p.there + next);
      const bool last = head + 1 == heads;
      if (loads && (last ? next < items : head % 4 == 3)) {
        const unsigned of = last ? next : item;
        Chunk chunk = at;
        if (last) {
          chunk = find_chunk(p, of / HK);
          if (elected) smem.chunks[turn ^ 1] = chunk;
          if (chunk.rows > 0) {
            const std::int64_t first = first_of(chunk, of);
            const void* k = a.k;
            if (kNorms && !Of::X) {  // P of keys as X has left them
              if ((seen & (kThere | kScaledK)) != kThere) seen = ptx::FlagRun(p.there + of, 1, 1).acquire<false>(0);
              if (seen & kScaledK) k = p.k_unit;
            }
            smem.k.template load<32 * kLoaders>(static_cast<const Io*>(k) + first, stride, chunk.rows);
            if constexpr (Of::P)
              smem.of_q.q.template load<32 * kLoaders>(static_cast<const Io*>(a.q) + first, stride, chunk.rows);
          }
          ptx::cp_async_commit();
        }
        const std::int64_t own = (last ? 0 : head + 1) + w - kFirst, h = of % HK * group + own;
        sums_there = chunk.rows > 0 && own < group;
        if (sums_there) {
          sums = sum_gates(read_gates<2>(a, chunk.begin, chunk.rows, h));
          if constexpr (!kNorms) store_vectors<Of::X, Of::P>(sums, a.scale, nullptr, nullptr, records_at(of)[own].vectors);
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
        if (tap != nullptr) tap_inverse<Of::threads>(smem.of_k.X, kNorms ? smem.of_k.norms : nullptr, tap);
        const bool norms = kNorms && a.tap_v_new != nullptr;
        if (norms)
          for (int i = ptx::thread_id() % Of::threads; i < kC; i += Of::threads) record.k_norms[i] = smem.of_k.norms[i];
        if (elected) ptx::bulk_store(&record.X, &smem.of_k.X, sizeof record.X);
        if (tap != nullptr || norms) barriers.all();  // the taps have been written
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
