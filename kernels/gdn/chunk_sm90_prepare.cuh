// gdn.chunk_sm90, first of two kernels: Record90 of every chunk (chunk_sm90_factors.cuh).
// grid: a block a multiprocessor, some or all of them        block: three pairs of teams, each on its own: it takes one
// item, slot * HK + key head, after the other, loads the next one's k and q as soon as it has multiplied its own, and takes
// one value head of the group after the other shared: a PrepareSmem90 a pair; q and k are normalised there first when asked.
// The states may start once every block has (griddepcontrol); they find an item's records where there[item] is 1.
#pragma once
#include "kernels/device/ptx/flag.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/gdn/chunk_sm90_factors.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

template <class Io, int kD>
struct alignas(1024) PrepareSmem90 {
  Keys90<Io, kD> keys;
  alignas(1024) Factors90 out;
  HalfFactors factors;
  Gates gates[kBlocks];  // of up to four value heads
  BlockDecays decays[kBlocks];
};

inline constexpr int kPairs = 3;  // of teams

template <class Io, int kD>
__global__ void __launch_bounds__(kPairs* kPrepareThreads, 1) prepare(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  ptx::launch_dependents();
  const int pair = __shfl_sync(kAll, threadIdx.x / kPrepareThreads, 0), thread = threadIdx.x % kPrepareThreads;
  const int team = thread / kTeamThreads, w = __shfl_sync(kAll, thread / 32 % kBlocks, 0);
  auto& smem = reinterpret_cast<PrepareSmem90<Io, kD>*>(shared)[pair];
  const TeamBarriers barriers{1 + TeamBarriers::kCount * pair};
  const Args& a = p.args;
  const unsigned HK = static_cast<unsigned>(a.HK), items = static_cast<unsigned>(p.slots) * HK;
  const std::int64_t stride = a.HK * kD, group = a.HV / a.HK;
  const auto first_of = [&](const Chunk& at, unsigned item) { return (at.begin * a.HK + item % HK) * kD; };
  const auto load = [&](const Chunk& at, unsigned item) {
    if (at.rows > 0) {
      const std::int64_t first = first_of(at, item);
      smem.keys.template load<kPrepareThreads>(static_cast<const Io*>(a.k) + first, static_cast<const Io*>(a.q) + first,
                                               stride, at.rows);
    }
    ptx::cp_async_commit();
  };
  RawGates<2> raw = {};  // of the item's first heads, one a warp of team 1
  const auto load_raw = [&](const Chunk& at, unsigned item, std::int64_t head) {
    if (team == 1 && head + w < group && at.rows > 0)
      raw = load_gates<2>(a, at.begin, at.rows, item % HK * group + head + w);
  };

  auto* zero = reinterpret_cast<uint4*>(&smem.out);  // above the diagonals nothing is ever written
  for (int i = thread; i < static_cast<int>(sizeof(smem.out) / 16); i += kPrepareThreads) zero[i] = uint4{};
  const std::uint64_t k = ptx::wgmma_rows(shared_address(smem.keys.k)), q = ptx::wgmma_rows(shared_address(smem.keys.q));
  unsigned item = blockIdx.x + gridDim.x * pair;
  if (item >= items) return;
  unsigned stored = items;  // the item whose records are on their way to global memory
  const auto announce = [&](unsigned next) {
    if (thread != 0) return;
    if (stored < items) {
      ptx::bulk_store_wait_done();
      ptx::release(&p.there[stored]);
    }
    stored = next;
  };
  Chunk at = find_chunk(p, item / HK);
  load(at, item);
  load_raw(at, item, 0);
  while (true) {
    const unsigned next_item = item + kPairs * gridDim.x;
    const Chunk next = next_item < items ? find_chunk(p, next_item / HK) : Chunk{};
    const std::int64_t hk = item % HK;
    Record90* records = records_of<Record90>(p) + item / HK * a.HV + hk * group;  // of the group's value heads
    const auto make_heads = [&](std::int64_t head) {                              // vectors of the heads from this one on
      if (team == 1 && head + w < group)
        make_vectors(transformed(a, at.rows, hk * group + head + w, raw), a.scale, smem.gates[w], smem.decays[w],
                     records[head + w].vectors);
    };
    if (at.rows > 0) make_heads(0);
    ptx::cp_async_wait<0>();
    ptx::fence_async_shared();
    if (thread == 0) ptx::bulk_store_wait();
    barriers.both();  // q, k and the first four heads' gates are there, the last item's factors have been read
    if (at.rows > 0 && p.k_unit != nullptr) {
      const std::int64_t first = first_of(at, item);
      smem.keys.normalise(thread / 32, kPrepareThreads / 32, at.rows, static_cast<Io*>(p.k_unit) + first,
                          static_cast<Io*>(p.q_unit) + first, stride);
      ptx::fence_async_shared();
      barriers.both();  // q and k are normalised
    }
    if (at.rows <= 0) {
      announce(item);  // an empty one, too: where offsets decrease, states may wait for it
      load(next, next_item);
      load_raw(next, next_item, 0);
    }

    for (std::int64_t head = 0; head < group && at.rows > 0; ++head) {
      const int one = static_cast<int>(head % kBlocks);
      if (head > 0) {
        if (thread == 0) ptx::bulk_store_wait();
        if (one == 0) load_raw(at, item, head), make_heads(head);
        barriers.both();  // the last head's factors have been read, the gates are there
      }
      Rows64 products;
      multiply_keys<Io, kD>(products, team == 0 ? k : q, k);
      if (head + 1 == group) {
        barriers.both();  // q and k have been read
        load(next, next_item);
        load_raw(next, next_item, 0);
      }
      if (head == 0) announce(item);
      if (team == 0)
        make_X(products, smem.gates[one], smem.decays[one], w, smem.factors, smem.out, barriers);
      else
        make_P(products, smem.gates[one], smem.decays[one], a.scale, w, smem.out);
      ptx::fence_async_shared();
      barriers.both();  // the head's factors are there, its gates have been read
      float* tap = tap_of(p, at.n, at.index, hk * group + head);
      if (tap != nullptr) tap_inverse(smem.out, tap);
      if (thread == 0) ptx::bulk_store(&records[head], &smem.out, sizeof(Factors90));
      if (tap != nullptr) barriers.both();  // the tap has read the factors
    }
    if (next_item >= items) break;
    item = next_item;
    at = next;
  }
  announce(items);
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
