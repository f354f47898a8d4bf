// gdn.chunk_sm90_fused: chunks of 32 tokens in one kernel: what the states need of a chunk is made beside them and never
// leaves shared memory. With 32 tokens X = (I + A)^-1 has two diagonal blocks of 16, so a warp makes it by itself
// (chunk_sm90_factors.cuh), and a chunk's product of the state with k and q together has 64 columns.
// grid: x = n * HV + h        block: 16 warps
//   0 .. 7     two warpgroups, 64 V rows of the state each, and o to global memory (chunk_sm90_fused_state.cuh)
//   8 .. 13    three pairs: of every third chunk one warp makes X, the other P
//   14         k, q and v of coming chunks to shared memory
//   15         gates and vectors of coming chunks
// A chunk stands at one of six places. They meet at its barriers:
//   keys     k and q are there                              warp 14 -> pair
//   gated    so are the gates                               warp 15 -> pair
//   unit     where q and k are to be normalised: keys that must be scaled are, first -> second warp of a pair
//   seen     and before, it has read them, second -> first
//   made     so are v, X and P                              warp 14, pair -> states
//   read     the states need nothing but v's place          states -> warps 14, 15
//   done     nor that: o has left it                        states -> warp 14
#pragma once
#include "kernels/gdn/chunk_sm90_fused_factors.cuh"
#include "kernels/gdn/chunk_sm90_fused_state.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

inline constexpr int kStates = 2, kPairWarps = 2, kFusedPairs = 3, kFusedThreads = 512;
inline constexpr int kFirstPair = 4 * kStates, kLoadWarp = kFirstPair + kPairWarps * kFusedPairs, kGateWarp = kLoadWarp + 1;
static_assert(32 * (kGateWarp + 1) == kFusedThreads);
// 64 Ki registers over 512 threads.
template <bool kNorms>
inline constexpr int kMakerRegisters = kNorms ? 88 : 80;
template <bool kNorms>
inline constexpr int kStateRegisters = 256 - kMakerRegisters<kNorms>;

template <class Io>
struct alignas(1024) FusedSmem {
  FusedPlace<Io> places[kPlaces];
  ShortVectors vectors[kPlaces];
  ShortGates gates[kPlaces];
  HalfBlocks blocks[kFusedPairs];
  ptx::Mbarrier keys[kPlaces], gated[kPlaces], unit[kPlaces], seen[kPlaces], made[kPlaces], read[kPlaces], done[kPlaces];

  __device__ void init(int thread) {
    for (auto& place : places) {
      auto* zero = reinterpret_cast<uint4*>(&place.factors);  // above the diagonals nothing is ever written
      for (int i = thread; i < static_cast<int>(sizeof place.factors / 16); i += kFusedThreads) zero[i] = uint4{};
    }
    if (thread == 0) {
      for (auto& barrier : keys) barrier.init(1);
      for (auto& barrier : gated) barrier.init(1);
      for (auto& barrier : unit) barrier.init(1);
      for (auto& barrier : seen) barrier.init(1);
      for (auto& barrier : made) barrier.init(kPairWarps + 1);
      for (auto& barrier : read) barrier.init(4 * kStates);
      for (auto& barrier : done) barrier.init(kStates);
      ptx::fence_mbarrier_init();
    }
    ptx::fence_async_shared();
  }
};

// Warp 14. The rows of a chunk that is not full it copies itself: the rest of a box would be rows of other sequences. All
// lanes go through the waits, so that none is a phase ahead of them.
template <class Io>
__device__ void load_chunks(const Params& p, const Maps90& maps, const ShortWork& work, FusedSmem<Io>& smem) {
  constexpr int kD = kFusedD;
  const Args& a = p.args;
  const int lane = threadIdx.x % 32, h = static_cast<int>(work.h), hk = static_cast<int>(work.hk);
  Turn<kPlaces> turn;
  for (int chunk = 0; chunk < work.chunks; ++chunk, turn.next()) {
    auto& place = smem.places[turn.stage];
    auto &keys = smem.keys[turn.stage], &made = smem.made[turn.stage];
    const int row = static_cast<int>(work.begin) + chunk * kShort, valid = work.valid(chunk);
    const bool full = valid == kShort;
    const std::int64_t key = (std::int64_t{row} * a.HK + hk) * kD, value = (std::int64_t{row} * a.HV + h) * kD;
    const auto copy = [&](Io* to, const void* from, std::int64_t first, std::int64_t stride) {
      Tile<64>::load<kShort, 32>(shared_address(to), static_cast<const Io*>(from) + first, stride, valid);
    };
    smem.read[turn.stage].wait_asleep(turn.parity ^ 1);
    __syncwarp();  // all lanes are past the wait
    if (full && lane == 0) keys.arrive_expect(sizeof place.keys);
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) {
      Io *k = place.keys[c], *q = k + kShort * 64;
      if (!full) {
        copy(k, a.k, key + 64 * c, a.HK * kD);
        copy(q, a.q, key + 64 * c, a.HK * kD);
      } else if (lane == 0) {
        ptx::tensor_load(k, maps.k, row, hk, 64 * c, keys);
        ptx::tensor_load(q, maps.q, row, hk, 64 * c, keys);
      }
    }
    smem.done[turn.stage].wait_asleep(turn.parity ^ 1);
    __syncwarp();  // all lanes are past the wait
    if (full && lane == 0) made.arrive_expect(sizeof place.v);
#pragma unroll
    for (int c = 0; c < kD / 64; ++c) {
      if (!full)
        copy(place.v[c], a.v, value + 64 * c, a.HV * kD);
      else if (lane == 0)
        ptx::tensor_load(place.v[c], maps.v, row, h, 64 * c, made);
    }
    if (full) continue;
    ptx::cp_async_commit();
    ptx::cp_async_wait<0>();
    ptx::fence_async_shared();
    __syncwarp();  // all rows are there
    if (lane != 0) continue;
    keys.arrive();
    made.arrive();
  }
}

// Warp 15: two chunks at once, which do not wait for one another where raw gates make it long.
template <class Io>
__device__ void gate_chunks(const Params& p, const ShortWork& work, FusedSmem<Io>& smem) {
  const Args& a = p.args;
  const auto load = [&](int chunk) {
    return load_gates<1>(a, work.begin + std::int64_t{chunk} * kShort, work.valid(chunk), work.h);
  };
  const HeadGate head = head_gate(a, work.h);
  RawGates<1> next[2] = {load(0), load(1)};
  Turn<kPlaces> turn;
  for (int chunk = 0; chunk < work.chunks; chunk += 2) {
    RawGates<1> raw[2] = {next[0], next[1]};
#pragma unroll
    for (int e = 0; e < 2; ++e) next[e] = load(chunk + 2 + e);  // past the last one nothing is read
    transform(a, head, {work.valid(chunk), work.valid(chunk + 1)}, raw);
    const GateSums<1> of[2] = {sum_gates(raw[0]), sum_gates(raw[1])};
#pragma unroll
    for (int e = 0; e < 2 && chunk + e < work.chunks; ++e, turn.next()) {
      smem.read[turn.stage].wait_asleep(turn.parity ^ 1);
      store_short_gates(of[e], a.scale, smem.gates[turn.stage], smem.vectors[turn.stage]);
      __syncwarp();  // they are there
      if (threadIdx.x % 32 == 0) smem.gated[turn.stage].arrive();
    }
  }
}

// First warp of a pair: what products with the keys need of 1 / |k_i|, from k k^T, and k k^T itself.
template <class Io>
__device__ void norm_keys(FusedSmem<Io>& smem, int at, std::uint32_t parity, HalfProducts& products) {
  auto& place = smem.places[at];
  ShortGates& gates = smem.gates[at];
  ShortVectors& vectors = smem.vectors[at];
  bool again = false;
  while (inverse_norms<Io>(products[0], products[2], again, gates.k_norms) && !again) {
    smem.seen[at].wait_asleep(parity);
    place.scale_keys(gates.k_norms[ptx::lane_id()]);
    __syncwarp();  // such rows are scaled
    multiply_half<Io, kFusedD, false>(place.keys[0], nullptr, products);
    again = true;
  }
  const int lane = ptx::lane_id();
  const float r = gates.k_norms[lane];
  gates.beta[lane] *= r * r;
  vectors.beta[lane] *= r;
  vectors.decay_in[lane] *= r;
  if (lane == 0) gates.k_past = again;
  __syncwarp();  // they are there
  if (lane == 0) smem.unit[at].arrive();
}
// Second warp: of 1 / |q_i|. Whether rows of q had to be scaled.
template <class Io>
__device__ bool norm_queries(FusedSmem<Io>& smem, int at, float scale) {
  const int lane = ptx::lane_id();
  float r = smem.places[at].template query_norm<false>(0);
  const bool past = std::is_same_v<Io, __nv_bfloat16> && __any_sync(kAll, r < kLeastNorm);
  if (past) {
    __syncwarp();  // all lanes have read the queries
    r = smem.places[at].template query_norm<true>(r);
  }
  smem.gates[at].read[lane] = r * scale;
  smem.vectors[at].decay_read[lane] *= r;
  __syncwarp();  // they are there
  return past;
}

// Warp `second` of a pair: every third chunk, from chunk `pair` on.
template <class Io, bool kTaps, bool kNorms>
__device__ void make_chunks(const Params& p, const ShortWork& work, FusedSmem<Io>& smem, int pair, bool second) {
  static_assert(kPlaces == 2 * kFusedPairs);
  const Args& a = p.args;
  std::uint32_t parity = 0;
  for (int chunk = pair, at = pair; chunk < work.chunks; chunk += kFusedPairs) {
    auto& place = smem.places[at];
    const ShortGates& gates = smem.gates[at];
    smem.keys[at].wait_asleep(parity);
    smem.gated[at].wait_asleep(parity);
    const Io *k = place.keys[0], *q = k + kShort * 64;
    HalfProducts products;
    if (second) {
      for (bool again = false;; again = true) {
        multiply_half<Io, kFusedD, true>(k, q, products);
        bool past = kNorms && !again && norm_queries(smem, at, a.scale);
        make_half_P(
            products, gates, [&](int i) { return kNorms ? gates.read[i] : a.scale; }, place.factors.P);
        if (!kNorms || again) break;
        __syncwarp();  // all lanes have read k
        if (ptx::lane_id() == 0) smem.seen[at].arrive();
        smem.unit[at].wait_asleep(parity);
        past = past || gates.k_past;
        if (!past) break;
      }
    } else {
      multiply_half<Io, kFusedD, false>(k, nullptr, products);
      if constexpr (kNorms) norm_keys(smem, at, parity, products);
      make_half_X(
          products, gates, [&](int i) { return gates.beta[i]; }, smem.blocks[pair], place.factors.X, nullptr);
    }
    ptx::fence_async_shared();
    __syncwarp();  // X or P is there
    if (kTaps && !second && a.tap_Ainv != nullptr)
      tap_inverse(place.factors, kNorms ? gates.k_norms : nullptr,
                  a.tap_Ainv + ((chunks_before<kShort>(p, work.n) + chunk) * a.HV + work.h) * kShort * kShort);
    if (threadIdx.x % 32 == 0) smem.made[at].arrive();
    at = at < kFusedPairs ? at + kFusedPairs : pair;
    parity ^= at == pair;
  }
}

template <class Io, bool kTaps, bool kNorms>
__global__ void __launch_bounds__(kFusedThreads, 1)
    fused(const __grid_constant__ Params p, const __grid_constant__ Maps90 maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<FusedSmem<Io>*>(shared);
  ShortWork work;
  if (!find_work<Io>(p, blockIdx.x, 0, kFusedD, work)) return;
  smem.init(threadIdx.x);
  __syncthreads();  // barriers and zeros are there
  const int warp = __shfl_sync(kAll, threadIdx.x / 32, 0), group = warp / 4;
  if (group < kStates) {
    ptx::setmaxnreg_inc<kStateRegisters<kNorms>>();
    run_short_state<Io, kTaps>(p, maps, work, 64 * group, 1 + group, [&](const Turn<kPlaces>& turn) {
      auto& place = smem.places[turn.stage];
      return ShortChunk<Io>{place,
                            place.v[group],
                            kNorms ? smem.gates[turn.stage].k_norms : nullptr,
                            smem.vectors[turn.stage],
                            smem.made[turn.stage],
                            smem.read[turn.stage],
                            smem.done[turn.stage],
                            turn.parity};
    });
  } else {
    ptx::setmaxnreg_dec<kMakerRegisters<kNorms>>();
    if (warp == kLoadWarp) return load_chunks<Io>(p, maps, work, smem);
    if (warp == kGateWarp) return gate_chunks<Io>(p, work, smem);
    make_chunks<Io, kTaps, kNorms>(p, work, smem, (warp - kFirstPair) / kPairWarps, (warp - kFirstPair) % kPairWarps != 0);
  }
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
