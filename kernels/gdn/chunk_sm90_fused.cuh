// gdn.chunk_sm90_fused: the arithmetic of chunk_sm90 in one kernel: what the states need of a chunk is made beside them and
// never leaves shared memory. For K = V = 128 and 16-bit io whose state needs no scales (bf16).
// grid: x = n * HV + h        block: four warpgroups
//   state 0, 1   64 V rows of the state each, and o to global memory (chunk_sm90_fused_state.cuh)
//   team 0, 1    k, q, v and gates of every other chunk to its factors and vectors (chunk_sm90_factors.cuh)
// A chunk stands at one of three places, its v, then its o, at one of two, that of its team. They meet at barriers:
//   keys    k and q of a team's full chunk are in shared memory     loader, one thread of the team -> team
//   there   the chunk is: v, factors, vectors                       team -> states
//   read    the states need nothing of it but v's place any more    states -> teams
//   done    nor v's place: o has left it                            states -> teams
#pragma once
#include "kernels/gdn/chunk_sm90_fused_state.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kStates = 2, kTeams = 2, kFusedThreads = (kStates + kTeams) * kGroup;
// 64 Ki registers over 512 threads.
inline constexpr int kStateRegisters = 192, kTeamRegisters = 64;

template <class Io>
struct alignas(1024) FusedSmem {
  Keys90<Io, kFusedD> keys_of[kPlaces];
  Io values[kTeams][kStates][kC * 64];  // in tiles of 64 V columns
  FusedFactors factors[kPlaces];
  alignas(16) Vectors90 vectors[kPlaces];
  struct {
    Gates gates[2];
    BlockDecays decays[2];
    alignas(16) Vectors90 vectors;  // of the next one
  } teams[kTeams];                  // of a team's chunk and its next one
  ptx::Mbarrier keys[kTeams], there[kPlaces], read[kPlaces], done[kTeams];

  __device__ void init(int thread) {
    for (auto& of : factors) {
      auto* zero = reinterpret_cast<uint4*>(&of);  // above the diagonals nothing is ever written
      for (int i = thread; i < static_cast<int>(sizeof of / 16); i += kFusedThreads) zero[i] = uint4{};
    }
    if (thread == 0) {
      for (auto& barrier : keys) barrier.init(1);
      for (auto& barrier : there) barrier.init(kBlocks + 1);  // the team's warps, the loader
      for (auto& barrier : read) barrier.init(4 * kStates);
      for (auto& barrier : done) barrier.init(kStates);
      ptx::fence_mbarrier_init();
    }
    ptx::fence_async_shared();
  }
};

// Every other chunk, from chunk `team` on. Warp 1 makes the gates of a chunk while warps 0 and 2 finish the X of the one
// before it, warp 3 loads.
template <class Io>
__device__ void run_team(const Params& p, const Maps90& maps, const Work& work, FusedSmem<Io>& smem, int team) {
  constexpr int kD = kFusedD, kGateWarp = 1, kLoadWarp = 3;
  const Args& a = p.args;
  const int thread = threadIdx.x % kGroup, w = __shfl_sync(kAll, thread / 32, 0);
  const bool loader = thread == 32 * kLoadWarp;
  const TeamBarriers barriers{1 + kStates + TeamBarriers::kCount * team};
  auto& own = smem.teams[team];
  auto& values = smem.values[team];
  using Quads = float4[sizeof(Vectors90) / 512][32];
  const int first = static_cast<int>(work.begin), end = static_cast<int>(work.end), chunks = work.chunks;
  const int h = static_cast<int>(work.h), hk = static_cast<int>(work.hk);
  const auto valid_of = [&](int chunk) { return min(end - first - chunk * kC, kC); };

  // k and q of a full chunk, once its place has been read: the loader.
  int loading = -1;
  const auto load_keys = [&](int chunk) {
    loading = chunk;
    if (valid_of(chunk) < kC) return;  // below zero past the last chunk
    auto& keys = smem.keys_of[chunk % kPlaces];
    smem.keys[team].arrive_expect(sizeof keys);
    keys.load(maps, first + chunk * kC, hk, smem.keys[team]);
  };
  RawGates raw = {};  // the gate warp's, of the next chunk
  const auto load_raw = [&](int chunk) {
    if (w == kGateWarp && chunk < chunks) raw = load_gates(a, first + std::int64_t{chunk} * kC, valid_of(chunk), h);
  };
  const auto make_raw = [&](int chunk) {
    const int which = chunk / kTeams % 2;
    if (w == kGateWarp && chunk < chunks)
      make_vectors(transformed(a, valid_of(chunk), h, raw), a.scale, own.gates[which], own.decays[which], own.vectors);
  };
  // Of the phase of read that frees a chunk's place, of the team's barriers in this chunk.
  const auto place_parity = [](int chunk) { return chunk / kPlaces % 2 ^ 1u; };
  const auto team_parity = [](int chunk) { return static_cast<std::uint32_t>(chunk / kTeams % 2); };

  if (loader) load_keys(team);
  load_raw(team);
  make_raw(team);
  for (int chunk = team; chunk < chunks; chunk += kTeams) {
    const int at = chunk % kPlaces;
    const bool full = valid_of(chunk) == kC;
    auto& keys = smem.keys_of[at];
    FusedFactors& out = smem.factors[at];
    const Gates& gates = own.gates[chunk / kTeams % 2];
    const BlockDecays& decays = own.decays[chunk / kTeams % 2];

    smem.read[at].wait_asleep(place_parity(chunk));
    if (w == kGateWarp) {
      __syncwarp();  // the vectors are there
      const int lane = thread % 32;
      reinterpret_cast<Quads&>(smem.vectors[at])[0][lane] = reinterpret_cast<Quads&>(own.vectors)[0][lane];
      reinterpret_cast<Quads&>(smem.vectors[at])[1][lane] = reinterpret_cast<Quads&>(own.vectors)[1][lane];
    }
    if (full) {
      if (loader && loading < chunk) load_keys(chunk);
      smem.keys[team].wait_asleep(team_parity(chunk));
    } else {
      smem.done[team].wait_asleep(team_parity(chunk) ^ 1);
      const std::int64_t row = first + std::int64_t{chunk} * kC, key = (row * a.HK + hk) * kD, value = (row * a.HV + h) * kD;
      keys.template load<kGroup>(static_cast<const Io*>(a.k) + key, static_cast<const Io*>(a.q) + key, a.HK * kD,
                                 valid_of(chunk));
#pragma unroll
      for (int i = 0; i < kStates; ++i)
        Tile<64>::load<kC, kGroup>(shared_address(values[i]), static_cast<const Io*>(a.v) + value + 64 * i, a.HV * kD,
                                   valid_of(chunk));
      ptx::cp_async_commit();
      ptx::cp_async_wait<0>();
      ptx::fence_async_shared();
    }
    if (a.l2norm) {
      barriers.team0();  // all rows are there
      keys.normalise(w, kBlocks, valid_of(chunk), nullptr, nullptr, 0);
      ptx::fence_async_shared();
    }
    barriers.team0();  // k and q are, the gates are
    load_raw(chunk + kTeams);
    Rows64 products;
    multiply_keys<Io, kD>(products, ptx::wgmma_rows(shared_address(keys.k)), ptx::wgmma_rows(shared_address(keys.k)));
    auto& scratch = reinterpret_cast<HalfFactors&>(out.P0);  // until P is written
    static_assert(sizeof(HalfFactors) <= sizeof out.P0);
    make_X<1>(products, gates, decays, w, scratch, out, barriers, [&] {
      make_raw(chunk + kTeams);
      if (!loader) return;
      if (full) smem.done[team].wait_asleep(team_parity(chunk) ^ 1);
      smem.there[at].arrive_expect(full ? sizeof values : 0);
      if (!full) return;
#pragma unroll
      for (int i = 0; i < kStates; ++i) ptx::tensor_load(values[i], maps.v, first + chunk * kC, h, 64 * i, smem.there[at]);
    });
    multiply_keys<Io, kD>(products, ptx::wgmma_rows(shared_address(keys.q)), ptx::wgmma_rows(shared_address(keys.k)));
    make_P(products, gates, decays, a.scale, w, out);
    if (w == 0) store_tile(out.P0, 0, 1, {float4{}, float4{}});  // above the diagonal, where scratch was
    ptx::fence_async_shared();
    __syncwarp();  // the warp's rows of the factors are there
    if (thread % 32 == 0) smem.there[at].arrive();
    const int next = chunk + kTeams;
    if (loader && smem.read[next % kPlaces].ended(place_parity(next))) load_keys(next);
    if (float* tap = tap_of(p, work.n, chunk, h); tap != nullptr) {
      barriers.team0();  // X is there
      tap_inverse<kGroup>(out, tap);
    }
  }
}

template <class Io, bool kTaps>
__global__ void __launch_bounds__(kFusedThreads, 1)
    fused(const __grid_constant__ Params p, const __grid_constant__ Maps90 maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<FusedSmem<Io>*>(shared);
  const auto find = [&](Work& work) { return find_work<Io, kFusedD>(p, ptx::block_id(), 0, kFusedD, work); };
  Work work;
  if (!find(work)) return;
  smem.init(threadIdx.x);
  __syncthreads();  // barriers and zeros are there
  const int group = __shfl_sync(kAll, threadIdx.x / kGroup, 0);
  if (group < kStates) {
    ptx::setmaxnreg_inc<kStateRegisters>();
    const auto at = [&](const Turn<kPlaces>& turn, int index) {
      return FusedChunk<Io>{
          smem.keys_of[turn.stage], smem.factors[turn.stage], smem.vectors[turn.stage],  smem.values[index % kTeams][group],
          smem.there[turn.stage],   smem.read[turn.stage],    smem.done[index % kTeams], turn.parity};
    };
    run_state_beside<Io, kTaps>(p, maps, work, 64 * group, 1 + group, at, find);
  } else {
    ptx::setmaxnreg_dec<kTeamRegisters>();
    run_team<Io>(p, maps, work, smem, group - kStates);
  }
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
