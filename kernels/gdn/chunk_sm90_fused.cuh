// gdn.chunk_sm90_fused: the arithmetic of chunk_sm90 in one kernel: what the states need of a chunk is made beside them and
// never leaves shared memory.
// grid: x = (n * HV + h) * splits + block of 64 * states V rows        block: three warpgroups, first those of the states
//   state   64 V rows of the state, and o to global memory (run_state, or run_state_beside where there are two)
//   team    k, q, v and gates of a chunk to its factors and vectors (chunk_sm90_factors.cuh); two teams take turns
// Each chunk stands at a place of three. They meet at four barriers a place:
//   keys    k and q of a full chunk are in shared memory            loader, one thread of a team -> the next chunk's team
//   there   the chunk is: v, factors, vectors                       team -> states
//   read    the states need nothing of it but v's place any more    states -> teams
//   done    nor v's place: o has left it                            states -> teams
#pragma once
#include "kernels/gdn/chunk_sm90_fused_state.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

template <int kHeadSize, int kStateGroups>
struct FusedShape {
  static constexpr int D = kHeadSize, states = kStateGroups, teams = 3 - states, threads = 3 * kGroup;
  static constexpr int splits = D / (64 * states);    // blocks of a (sequence, head)
  static constexpr int factors = states > 1 ? 2 : 3;  // places of factors: as many as there is room for
  static constexpr int state_registers = states > 1 ? 192 : 240, team_registers = states > 1 ? 120 : 128;
};

template <class Io, class Shape>
struct alignas(1024) FusedSmem {
  struct Place {
    Keys90<Io, Shape::D> keys;
    Io v[Shape::states][kC * 64];  // in tiles of 64 V columns, then o
  } places[kPlaces];
  Factors90InShared factors[Shape::factors];
  alignas(16) Vectors90 vectors[kPlaces];
  struct {
    Gates gates[2];
    BlockDecays decays[2];
    alignas(16) Vectors90 vectors;  // of the next one
  } teams[Shape::teams];            // of a team's chunk and its next one
  // With two teams each waits for the keys of every other chunk: a barrier for every chunk of a round of both, since on one
  // for a place a team could take the phase before for its own.
  ptx::Mbarrier keys[kPlaces * Shape::teams], there[kPlaces], read[kPlaces], done[kPlaces];

  __device__ void init(int thread) {
    for (auto& of : factors) {
      auto* zero = reinterpret_cast<uint4*>(&of);  // above the diagonals nothing is ever written
      for (int i = thread; i < static_cast<int>(sizeof of / 16); i += Shape::threads) zero[i] = uint4{};
    }
    if (thread == 0) {
      for (auto& barrier : keys) barrier.init(1);
      for (auto& barrier : there) barrier.init(kBlocks + 1);  // the team's warps, the loader
      for (auto& barrier : read) barrier.init(4 * Shape::states);
      for (auto& barrier : done) barrier.init(Shape::states);
      ptx::fence_mbarrier_init();
    }
    ptx::fence_async_shared();
  }
};

// A chunk's place and the parities of its barriers, for a team.
template <class Shape>
struct TeamTurn {
  Turn<kPlaces> place;
  Turn<kPlaces * Shape::teams> keys;
  __device__ void next() {
    place.next();
    keys.next();
  }
};

// A warpgroup: k k^T and q k^T for tiles as wgmma_rows takes them.
template <class Io, int kD>
__device__ void multiply_both(Rows64& kk, Rows64& qk, std::uint64_t k, std::uint64_t q) {
  ptx::wgmma_pin(kk);
  ptx::wgmma_pin(qk);
  ptx::wgmma_fence();
#pragma unroll
  for (int step = 0; step < kD / 16; ++step) {
    const std::uint64_t at = step / 4 * (kTileBytes / 16) + 2 * (step % 4);
    ptx::wgmma_m64n64k16_shared<Io>(kk, k + at, k + at, step > 0);
    ptx::wgmma_m64n64k16_shared<Io>(qk, q + at, k + at, step > 0);
  }
  ptx::wgmma_commit();
  ptx::wgmma_wait<0>();
  ptx::wgmma_pin(kk);
  ptx::wgmma_pin(qk);
}

template <class Io, class Shape>
__device__ void run_team(const Params& p, const Maps90& maps, const Work& work, FusedSmem<Io, Shape>& smem, int team) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const int thread = threadIdx.x % kGroup, w = __shfl_sync(kAll, thread / 32, 0);
  const TeamBarriers barriers{1 + Shape::states + TeamBarriers::kCount * team};
  using Quads = float4[sizeof(Vectors90) / 512][32];
  const auto begin = [&](int chunk) { return work.begin + std::int64_t{chunk} * kC; };
  const auto load_keys = [&](int chunk, const TeamTurn<Shape>& turn) {  // one thread, once the place has been read
    if (work.valid(chunk) < kC) return;                                 // below zero past the last chunk
    auto& keys = smem.places[turn.place.stage].keys;
    smem.keys[turn.keys.stage].arrive_expect(sizeof keys);
    keys.load(maps, static_cast<int>(begin(chunk)), static_cast<int>(work.hk), smem.keys[turn.keys.stage]);
  };

  TeamTurn<Shape> turn;
  if (team == 0 && thread == 0) load_keys(0, turn);
  if (team > 0) turn.next();
  // Warp 0: the gates of a chunk, loaded and made one chunk ahead; its vectors once their place has been read.
  RawGates raw = {};
  int own = 0;  // gates and decays of this chunk
  const auto load_raw = [&](int chunk) {
    if (w == 0 && chunk < work.chunks) raw = load_gates(a, begin(chunk), work.valid(chunk), work.h);
  };
  const auto make_raw = [&](int chunk, int which) {
    auto& to = smem.teams[team];
    if (w == 0 && chunk < work.chunks)
      make_vectors(transformed(a, work.valid(chunk), work.h, raw), a.scale, to.gates[which], to.decays[which], to.vectors);
  };
  load_raw(team);
  make_raw(team, own);
  for (int chunk = team; chunk < work.chunks; chunk += Shape::teams) {
    const int at = turn.place.stage, valid = work.valid(chunk);
    const bool full = valid == kC;
    auto& place = smem.places[at];
    Factors90InShared& out = smem.factors[Shape::factors == kPlaces ? at : chunk % 2];
    const Gates& gates = smem.teams[team].gates[own];
    const BlockDecays& decays = smem.teams[team].decays[own];
    TeamTurn<Shape> next = turn;
    next.next();

    smem.read[at].wait(turn.place.parity ^ 1);
    if (w == 0) {
      __syncwarp();  // the vectors are there
      reinterpret_cast<Quads&>(smem.vectors[at])[0][thread] = reinterpret_cast<Quads&>(smem.teams[team].vectors)[0][thread];
      reinterpret_cast<Quads&>(smem.vectors[at])[1][thread] = reinterpret_cast<Quads&>(smem.teams[team].vectors)[1][thread];
    }
    if (full) {
      smem.keys[turn.keys.stage].wait(turn.keys.parity);
    } else {
      smem.done[at].wait(turn.place.parity ^ 1);
      const std::int64_t key = (begin(chunk) * a.HK + work.hk) * kD,
                         value = (begin(chunk) * a.HV + work.h) * kD + work.column;
      place.keys.template load<kGroup>(static_cast<const Io*>(a.k) + key, static_cast<const Io*>(a.q) + key, a.HK * kD,
                                       valid);
#pragma unroll
      for (int i = 0; i < Shape::states; ++i)
        Tile<64>::load<kC, kGroup>(shared_address(place.v[i]), static_cast<const Io*>(a.v) + value + 64 * i, a.HV * kD,
                                   valid);
      ptx::cp_async_commit();
      ptx::cp_async_wait<0>();
      ptx::fence_async_shared();
    }
    if (a.l2norm) {
      barriers.team0();  // all rows are there
      place.keys.normalise(w, kBlocks, valid, nullptr, nullptr, 0);
      ptx::fence_async_shared();
    }
    barriers.team0();  // k and q are, the gates are
    Rows64 kk, qk;
    multiply_both<Io, kD>(kk, qk, ptx::wgmma_rows(shared_address(place.keys.k)),
                          ptx::wgmma_rows(shared_address(place.keys.q)));
    load_raw(chunk + Shape::teams);
    if (thread == 0) {
      if (full) smem.done[at].wait(turn.place.parity ^ 1);
      smem.there[at].arrive_expect(full ? sizeof place.v : 0);
      if (full) {
#pragma unroll
        for (int i = 0; i < Shape::states; ++i)
          ptx::tensor_load(place.v[i], maps.v, static_cast<int>(begin(chunk)), static_cast<int>(work.h),
                           work.column + 64 * i, smem.there[at]);
      }
    }
    // The chunk before the last has been read. With two places of factors it stood where this one's will.
    if (Shape::factors < kPlaces || thread == 0) smem.read[next.place.stage].wait(next.place.parity ^ 1);
    if (thread == 0) load_keys(chunk + 1, next);
    auto& scratch = reinterpret_cast<HalfFactors&>(out.P0);  // until P is written
    static_assert(sizeof(HalfFactors) <= sizeof out.P0);
    make_X<1>(kk, gates, decays, w, scratch, out, barriers);
    make_P(qk, gates, decays, a.scale, w, out);
    if (w == 0) store_tile(out.P0, 0, 1, {float4{}, float4{}});  // above the diagonal, where scratch was
    ptx::fence_async_shared();
    __syncwarp();  // the warp's rows of the factors are there
    if (thread % 32 == 0) smem.there[at].arrive();
    own ^= 1;
    make_raw(chunk + Shape::teams, own);
    if (float* tap = tap_of(p, work.n, chunk, work.h); tap != nullptr && work.column == 0) {
      barriers.team0();  // X is there
      tap_inverse<kGroup>(out, tap);
    }
#pragma unroll
    for (int i = 0; i < Shape::teams; ++i) turn.next();
  }
}

template <class Io, class Shape, bool kTaps>
__global__ void __launch_bounds__(Shape::threads, 1)
    fused(const __grid_constant__ Params p, const __grid_constant__ Maps90 maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<FusedSmem<Io, Shape>*>(shared);
  const int column = static_cast<int>(blockIdx.x % Shape::splits) * 64 * Shape::states;
  const auto find = [&](Work& work) {
    return find_work<Io, Shape::D>(p, ptx::block_id() / Shape::splits, column, 64 * Shape::states, work);
  };
  Work work;
  if (!find(work)) return;
  smem.init(threadIdx.x);
  __syncthreads();  // barriers and zeros are there
  const int group = __shfl_sync(kAll, threadIdx.x / kGroup, 0);
  if (group < Shape::states) {
    ptx::setmaxnreg_inc<Shape::state_registers>();
    const auto at = [&](const auto& turn, int factors) {
      const int stage = turn.stage;
      auto& place = smem.places[stage];
      return ChunkAt<Io, Shape::D>{place.keys,        smem.factors[factors], smem.vectors[stage], place.v[group],
                                   smem.there[stage], smem.read[stage],      smem.done[stage],    turn.parity};
    };
    if constexpr (Shape::states == 1)
      run_state<Io, Shape::D, kPlaces, false, kTaps>(p, maps, work, column, 1,
                                                     [&](const auto& turn) { return at(turn, turn.stage); });
    else
      run_state_beside<Io, Shape::D, kTaps>(p, maps, work, column + 64 * group, 1 + group, at, find);
  } else {
    ptx::setmaxnreg_dec<Shape::team_registers>();
    run_team<Io, Shape>(p, maps, work, smem, group - Shape::states);
  }
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
