// gdn.chunk_sm90: the kernel and its launch for one io type and head size.
// grid: x = (n * HV + h) * splits + block of 64 * states V rows        block: teams, then state groups
#pragma once
#include "kernels/gdn/chunk_sm90_state.cuh"
#include "kernels/gdn/chunk_sm90_team.cuh"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gdn {
namespace chunk_sm90 {

template <class Io, class Shape>
__global__ void __launch_bounds__(Shape::threads, 1) chunk_kernel(const __grid_constant__ Params p) {
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<Smem90<Io, Shape>*>(shared);
  const Args& a = p.args;
  const std::int64_t head = blockIdx.x / Shape::splits, n = head / a.HV, h = head % a.HV;
  const Rows rows = rows_of(p, n);
  const StateSlot slot = state_slot(a, n, rows.begin == rows.end);
  const int column = static_cast<int>(blockIdx.x % Shape::splits) * 64 * Shape::states;
  if (slot.absent) return zero_output<Io>(a, h, rows, column, 64 * Shape::states);
  const Work work{n, h, h / (a.HV / a.HK), rows.begin, rows.end, (rows.end - rows.begin + kC - 1) / kC, column, slot};
  auto* zero = reinterpret_cast<uint4*>(smem.pairs);  // above the diagonals nothing is ever written
  for (int i = threadIdx.x; i < static_cast<int>(sizeof(smem.pairs) / 16); i += Shape::threads) zero[i] = uint4{};
  if (threadIdx.x == 0) {
    for (ptx::Mbarrier& barrier : smem.ready) barrier.init(kGroup);
    for (ptx::Mbarrier& barrier : smem.used_pair) barrier.init(4 * Shape::states);
    for (ptx::Mbarrier& barrier : smem.used_stage) barrier.init(4 * Shape::states);
    ptx::fence_mbarrier_init();
  }
  ptx::fence_async_shared();
  __syncthreads();  // barriers and zeros are there
  const int group = threadIdx.x / kGroup;
  if (group < Shape::teams) {
    ptx::setmaxnreg_dec<Shape::team_registers>();
    run_team<Io, Shape>(p, work, smem, group);
  } else {
    ptx::setmaxnreg_inc<Shape::state_registers>();
    run_state<Io, Shape>(p, work, smem, group - Shape::teams);
  }
#else
  __trap();  // variants.cc offers this where it was built for sm_90a only
#endif
}

template <class Io, class Shape>
void launch_shape(const Params& p, cudaStream_t stream) {
  runtime::launch("gdn.chunk_sm90", chunk_kernel<Io, Shape>, p.args.N * p.args.HV * Shape::splits, Shape::threads,
                  sizeof(Smem90<Io, Shape>), stream, p);
}

}  // namespace chunk_sm90

// Few (sequence, head) pairs: their V rows over two blocks, each with two teams. Rows of S never meet, and teams do the same
// sums, so the bits are the same.
template <class Io, int kD>
void launch_chunk_sm90_as(const chunk_sm80::Params& p, cudaStream_t stream) {
  using namespace chunk_sm90;
  if constexpr (kD == 128) {
    int device = 0, sms = 0;
    runtime::check(cudaGetDevice(&device), "cudaGetDevice");
    runtime::check(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
    if (2 * p.args.N * p.args.HV > sms) return launch_shape<Io, Shape90<kD, 2, 1>>(p, stream);
  }
  launch_shape<Io, Shape90<kD, 1, 2>>(p, stream);
}

}  // namespace deltagauge::kernels::gdn
