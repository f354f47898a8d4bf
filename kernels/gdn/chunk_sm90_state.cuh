// gdn.chunk_sm90, second of two kernels: the state through the chunks of a sequence, from records.
// grid: x = (n * HV + h) * splits + block of 64 V rows        block
//   a warpgroup   64 V rows of the state, and o to global memory (chunk_sm90_warpgroup.cuh)
//   a warp        k, q, v and the record of coming chunks
// It may start while the first kernel runs, and waits for each record. They meet at full of a stage, its chunk is in shared
// memory, and at read and done (ChunkAt).
#pragma once
#include "kernels/device/ptx/flag.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/gdn/chunk_sm90_warpgroup.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

template <int kHeadSize>
struct Shape90 {
  static constexpr int D = kHeadSize, threads = kGroup + 32;
  static constexpr int splits = D / 64;  // blocks of a (sequence, head)
  static constexpr int stages = 3;
};

template <class Io, class Shape>
struct alignas(1024) Smem90 {
  struct Stage {
    Tokens90<Io, Shape::D> k, q;
    Factors90InShared factors;
    Io v[kC * 64];  // then o
    Vectors90 vectors;
    ptx::Mbarrier full, read, done;
  } stages[Shape::stages];
};

// Chunk i of the work's finds its record at records[i * HV]; there: what the first kernel says of it.
struct Records90 {
  const Record90* records;
  ptx::FlagRun there;
  __device__ Records90(const Params& p, const Work& work) : Records90(p, work, first_slot(work.begin, work.n)) {}

 private:
  __device__ Records90(const Params& p, const Work& work, std::int64_t slot)
      : records(records_of<Record90>(p) + slot * p.args.HV + work.h),
        there(p.there + slot * p.args.HK + work.hk, p.args.HK, work.chunks) {}
};

// The loading warp. The rows of a chunk that is not full it copies itself: the rest of a box would be rows of other
// sequences. All lanes go through the waits, so that none is a phase ahead of them.
template <class Io, class Shape>
__device__ void run_loader(const Params& p, const Maps90& maps, const Work& work, Smem90<Io, Shape>& smem) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const bool elected = threadIdx.x % 32 == 0;
  const int h = static_cast<int>(work.h), hk = static_cast<int>(work.hk);
  auto [records, there] = Records90(p, work);
  Turn<Shape::stages> turn;
  for (int chunk = 0; chunk < work.chunks; ++chunk, turn.next()) {
    auto& stage = smem.stages[turn.stage];
    const int valid = work.valid(chunk), row = static_cast<int>(work.begin) + chunk * kC;
    const bool full = valid == kC;
    const Record90& from = records[chunk * a.HV];
    const std::uint32_t said = there.acquire(chunk);  // while the stage is still in use
    stage.read.wait_asleep(turn.parity ^ 1);
    if (elected) {
      stage.full.arrive_expect(sizeof from.X + sizeof from.P + sizeof from.vectors +
                               (full ? sizeof stage.k + sizeof stage.q + sizeof stage.v : 0));
      ptx::bulk_load(stage.factors.D0, &from, offsetof(Record90, P) + sizeof from.P.P0, stage.full);
      ptx::bulk_load(stage.factors.P1, from.P.P1, sizeof from.P.P1, stage.full);
      ptx::bulk_load(&stage.vectors, &from.vectors, sizeof from.vectors, stage.full);
      if (full) {
        stage.k.load(said & kScaledK ? maps.k_scaled : maps.k, row, hk, stage.full);
        stage.q.load(said & kScaledQ ? maps.q_scaled : maps.q, row, hk, stage.full);
      }
    }
    stage.done.wait_asleep(turn.parity ^ 1);
    if (full) {
      if (elected) ptx::tensor_load(stage.v, maps.v, row, h, work.column, stage.full);
    } else {
      const std::int64_t key = (std::int64_t{row} * a.HK + hk) * kD,
                         value = (std::int64_t{row} * a.HV + h) * kD + work.column;
      stage.k.template load<32>(static_cast<const Io*>(said & kScaledK ? p.k_unit : a.k) + key, a.HK * kD, valid);
      stage.q.template load<32>(static_cast<const Io*>(said & kScaledQ ? p.q_unit : a.q) + key, a.HK * kD, valid);
      Tile<64>::load<kC, 32>(shared_address(stage.v), static_cast<const Io*>(a.v) + value, a.HV * kD, valid);
      ptx::cp_async_commit();
      ptx::cp_async_wait<0>();
      ptx::fence_async_shared();
    }
    stage.full.arrive();
  }
}

// A block: 64 V rows of its work through all chunks.
template <class Io, class Shape, bool kTaps, class W>
__device__ void run_states(const Params& p, const Maps90& maps, const W& work, Smem90<Io, Shape>& smem) {
  constexpr int kEnd = kGroup + 32;
  if (threadIdx.x == 0) {
    for (auto& stage : smem.stages) {
      stage.full.init(33);
      stage.read.init(kGroup);
      stage.done.init(kGroup);
    }
    ptx::fence_mbarrier_init();
  }
  for (auto& stage : smem.stages) stage.factors.clear_zeros(threadIdx.x, Shape::threads);
  ptx::fence_async_shared();
  __syncthreads();  // the barriers and zeros are there
  if constexpr (W::waits) ptx::wait_for_dependency();
  if (threadIdx.x < kGroup) {
    run_state<Io, Shape::D, Shape::stages, kTaps>(p, maps, work, work.column, 1, [&](const auto& turn) {
      auto& stage = smem.stages[turn.stage];
      return ChunkAt<Io, Shape::D>{stage.k,    stage.q,    stage.factors, stage.vectors, stage.v,
                                   stage.full, stage.read, stage.done,    turn.parity};
    });
    ptx::barrier_arrive<kEnd>(2);  // the warp is done
  } else {
    run_loader<Io, Shape>(p, maps, work, smem);
    ptx::barrier_sync<kEnd>(2);  // the state is done: a warp that waits for the first kernel holds up its block's others
    ptx::wait_for_dependency();  // so that what follows this kernel finds the first one ended, too
  }
}

template <class Io, class Shape, bool kTaps>
__global__ void __launch_bounds__(Shape::threads, 1)
    states(const __grid_constant__ Params p, const __grid_constant__ Maps90 maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  Work work;
  const int column = static_cast<int>(blockIdx.x % Shape::splits) * 64;
  if (!find_work<Io>(p, blockIdx.x / Shape::splits, column, 64, work)) return ptx::wait_for_dependency();
  run_states<Io, Shape, kTaps>(p, maps, work, *reinterpret_cast<Smem90<Io, Shape>*>(shared));
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
