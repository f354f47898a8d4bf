// gdn.chunk_sm90, second of two kernels: the state through the chunks of a sequence, from records.
// grid: x = (n * HV + h) * splits + block of 64 * states V rows        block: warpgroups, first those of the states
//   state    64 V rows of the state, and o to global memory (chunk_sm90_warpgroup.cuh)
//   loader   k, q, v and the record of coming chunks: one thread; of a chunk that is not full, all of them
// It may start while the first kernel runs, and waits for each record. The warpgroups meet at full of a stage, its chunk is
// in shared memory, and at read and done (ChunkAt).
#pragma once
#include "kernels/device/ptx/flag.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/device/ptx/setmaxnreg.cuh"
#include "kernels/gdn/chunk_sm90_warpgroup.cuh"

namespace deltagauge::kernels::gdn::chunk_sm90 {

template <int kHeadSize, int kStateGroups>
struct Shape90 {
  static constexpr int D = kHeadSize, states = kStateGroups, threads = kGroup * (states + 1);
  static constexpr int splits = D / (64 * states);  // blocks of a (sequence, head)
  static constexpr int stages = states > 1 ? 2 : 3;
  static constexpr bool share_registers = states > 1;                 // else there are enough
  static constexpr int loader_registers = 24, state_registers = 240;  // with two states; 384 threads start with 168
};

template <class Io, class Shape>
struct alignas(1024) Smem90 {
  struct Stage {
    Keys90<Io, Shape::D> keys;
    Factors90InShared factors;
    Io v[Shape::states][kC * 64];  // in tiles of 64 V columns, then o
    Vectors90 vectors;
    ptx::Mbarrier full, read, done;
  } stages[Shape::stages];
};

// Chunk i of the work's finds its record at records[i * HV], and whether that is there at there[i * HK].
struct Records90 {
  const Record90* records;
  const std::uint32_t* there;
  __device__ Records90(const Params& p, const Work& work) {
    const std::int64_t slot = first_slot(work.begin, work.n);
    records = records_of<Record90>(p) + slot * p.args.HV + work.h;
    there = p.there + slot * p.args.HK + work.hk;
  }
};

template <class Io, class Shape>
__device__ void run_loader(const Params& p, const Maps90& maps, const Work& work, Smem90<Io, Shape>& smem) {
  constexpr int kD = Shape::D;
  const Args& a = p.args;
  const int thread = threadIdx.x % kGroup;
  const auto [records, there] = Records90(p, work);
  Turn<Shape::stages> turn;
  for (int chunk = 0; chunk < work.chunks; ++chunk, turn.next()) {
    auto& stage = smem.stages[turn.stage];
    const int valid = work.valid(chunk), row = static_cast<int>(work.begin) + chunk * kC;
    const bool full = valid == kC;
    if (full && thread != 0) continue;
    if (thread == 0) {
      ptx::acquire(&there[chunk * a.HK]);
      if (chunk >= Shape::stages) stage.read.wait_asleep(turn.parity ^ 1);
    }
    if (!full) {
      if (thread == 0 && chunk >= Shape::stages) stage.done.wait_asleep(turn.parity ^ 1);
      ptx::barrier_sync<kGroup>(1);  // the stage is free: of its phases only one thread has kept count
      const std::int64_t key = (std::int64_t{row} * a.HK + work.hk) * kD,
                         value = (std::int64_t{row} * a.HV + work.h) * kD + work.column;
      stage.keys.template load<kGroup>(static_cast<const Io*>(p.k_unit ? p.k_unit : a.k) + key,
                                       static_cast<const Io*>(p.q_unit ? p.q_unit : a.q) + key, a.HK * kD, valid);
#pragma unroll
      for (int i = 0; i < Shape::states; ++i)
        Tile<64>::load<kC, kGroup>(shared_address(stage.v[i]), static_cast<const Io*>(a.v) + value + 64 * i, a.HV * kD,
                                   valid);
      ptx::cp_async_commit();
      ptx::cp_async_wait<0>();
      ptx::fence_async_shared();
      ptx::barrier_sync<kGroup>(1);  // all rows are there
      if (thread != 0) continue;
    }
    stage.full.arrive_expect(kRecordBytes + (full ? sizeof stage.keys + sizeof stage.v : 0));
    if (full) stage.keys.load(maps, row, static_cast<int>(work.hk), stage.full);
    const Record90& from = records[chunk * a.HV];
    ptx::bulk_load(stage.factors.D0, from.D0, sizeof from.D0 + sizeof from.X10, stage.full);
    ptx::bulk_load(stage.factors.D1, from.D1, sizeof from.D1 + sizeof from.P0, stage.full);
    ptx::bulk_load(stage.factors.P1, from.P1, sizeof from.P1, stage.full);
    ptx::bulk_load(&stage.vectors, &from.vectors, sizeof from.vectors, stage.full);
    if (full) {
      if (chunk >= Shape::stages) stage.done.wait_asleep(turn.parity ^ 1);
#pragma unroll
      for (int i = 0; i < Shape::states; ++i)
        ptx::tensor_load(stage.v[i], maps.v, row, static_cast<int>(work.h), work.column + 64 * i, stage.full);
    }
  }
}

// A block: 64 * Shape::states V rows of its work through all chunks.
template <class Io, class Shape, bool kTaps, class W>
__device__ void run_states(const Params& p, const Maps90& maps, const W& work, Smem90<Io, Shape>& smem) {
  constexpr int kEnd = kGroup * Shape::states + 32;
  if (threadIdx.x == 0) {
    for (auto& stage : smem.stages) {
      stage.full.init(1);
      stage.read.init(4 * Shape::states);
      stage.done.init(Shape::states);
    }
    ptx::fence_mbarrier_init();
  }
  for (auto& stage : smem.stages) stage.factors.clear_zeros(threadIdx.x, Shape::threads);
  ptx::fence_async_shared();
  __syncthreads();  // the barriers and zeros are there
  if (threadIdx.x / kGroup < Shape::states) {
    if constexpr (Shape::share_registers) ptx::setmaxnreg_inc<Shape::state_registers>();
    const int group = threadIdx.x / kGroup;
    run_state<Io, Shape::D, Shape::stages, (Shape::states > 1), kTaps>(
        p, maps, work, work.column + 64 * group, 3 + group, [&](const auto& turn) {
          auto& stage = smem.stages[turn.stage];
          return ChunkAt<Io, Shape::D>{stage.keys, stage.factors, stage.vectors, stage.v[group],
                                       stage.full, stage.read,    stage.done,    turn.parity};
        });
    ptx::barrier_arrive<kEnd>(2);  // the warp is done
  } else {
    if constexpr (Shape::share_registers) ptx::setmaxnreg_dec<Shape::loader_registers>();
    run_loader<Io, Shape>(p, maps, work, smem);
    if (threadIdx.x % kGroup >= 32) return;
    ptx::barrier_sync<kEnd>(
        2);  // the state warps are done: a warp that waits for the first kernel holds up its block's others
    ptx::wait_for_dependency();  // so that what follows this kernel finds the first one ended, too
  }
}

template <class Io, class Shape, bool kTaps>
__global__ void __launch_bounds__(Shape::threads, 1)
    states(const __grid_constant__ Params p, const __grid_constant__ Maps90 maps) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  Work work;
  const int column = static_cast<int>(blockIdx.x % Shape::splits) * 64 * Shape::states;
  if (!find_work<Io>(p, blockIdx.x / Shape::splits, column, 64 * Shape::states, work)) return ptx::wait_for_dependency();
  run_states<Io, Shape, kTaps>(p, maps, work, *reinterpret_cast<Smem90<Io, Shape>*>(shared));
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

}  // namespace deltagauge::kernels::gdn::chunk_sm90
