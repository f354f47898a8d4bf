// The kernels of faults.h: `produce` writes tiles to shared memory and sends them to global memory, one flag a tile;
// `consume` starts beside it, loads them in two stages and sums their columns by wgmma with a left operand of ones;
// `copy_out` starts beside that and copies the sums.
#include "kernels/host/faults.h"

#include <cuda_bf16.h>

#include <algorithm>
#include <memory>

#include "kernels/device/ptx/barrier.cuh"
#include "kernels/device/ptx/bulk.cuh"
#include "kernels/device/ptx/flag.cuh"
#include "kernels/device/ptx/griddepcontrol.cuh"
#include "kernels/device/ptx/mbarrier.cuh"
#include "kernels/device/ptx/wgmma.cuh"
#include "kernels/device/tile.cuh"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::host_faults {

using deltagauge::host::Fault, deltagauge::host::kFaultTurns, deltagauge::host::kFaultSums;

constexpr int kRows = 64, kElements = kRows * 64, kGroup = 128;
constexpr std::uint32_t kBytes = kElements * sizeof(__nv_bfloat16);

struct Params {
  __nv_bfloat16* tiles;
  std::uint32_t* there;
  float *sums, *out;
};
__host__ __device__ constexpr int element(int turn, int row, int column) { return (turn + 3 * row + 5 * column) % 7 - 3; }

template <Fault kFault>
__global__ void produce(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) char shared[];
  auto* tile = reinterpret_cast<__nv_bfloat16*>(shared);
  const int thread = threadIdx.x;
  ptx::launch_dependents();
  const auto announce = [&](int turn) {
    if (thread != 0 || turn < 0) return;
    if constexpr (kFault == Fault::store_done)
      ptx::bulk_store_wait();
    else if constexpr (kFault != Fault::store_wait)
      ptx::bulk_store_wait_done();
    ptx::release(&p.there[turn]);
  };
  for (int turn = 0; turn < kFaultTurns; ++turn) {
    announce(turn - 1);
    ptx::barrier_sync<kGroup>(1);  // the last tile has been read
    for (int i = thread; i < kElements; i += kGroup) {
      const int row = i / 64, column = i % 64;
      tile[Tile<64>::offset(row, column / 8) / 2 + column % 8] =
          __float2bfloat16_rn(static_cast<float>(element(turn, row, column)));
    }
    if constexpr (kFault != Fault::proxy_fence) ptx::fence_async_shared();
    if constexpr (kFault != Fault::barrier) ptx::barrier_sync<kGroup>(1);  // the tile is there
    if (thread == 0) ptx::bulk_store(p.tiles + turn * kElements, tile, kBytes);
  }
  announce(kFaultTurns - 1);
  if (thread == 0) ptx::bulk_store_wait();
}

struct alignas(1024) Smem {
  __nv_bfloat16 tile[2][kElements];
  ptx::Mbarrier full[2], free[2];
};

// Four warps multiply, one loads.
template <Fault kFault>
__global__ void consume(const __grid_constant__ Params p) {
  extern __shared__ __align__(1024) char shared[];
  auto& smem = *reinterpret_cast<Smem*>(shared);
  const int thread = threadIdx.x;
  ptx::launch_dependents();
  if (thread == 0) {
    for (int stage = 0; stage < 2; ++stage) {
      smem.full[stage].init(1);
      smem.free[stage].init(kFault == Fault::missing_arrival ? 5 : 4);
    }
    ptx::fence_mbarrier_init();
  }
  __syncthreads();  // the barriers are there
  if (thread >= kGroup) {
    if (thread > kGroup) return ptx::wait_for_dependency();
    if constexpr (kFault == Fault::overtaken) smem.full[0].arrive(), smem.full[0].arrive();
    for (int turn = 0; turn < kFaultTurns; ++turn) {
      const int stage = turn % 2;
      const std::uint32_t parity = turn / 2 % 2;
      if (turn >= 2) smem.free[stage].wait(kFault == Fault::parity ? parity : parity ^ 1);
      if constexpr (kFault != Fault::flag) ptx::FlagRun(p.there, 1, kFaultTurns).acquire(turn);
      smem.full[stage].arrive_expect(kBytes);
      ptx::bulk_load(smem.tile[stage], p.tiles + turn * kElements, kBytes, smem.full[stage]);
    }
    return ptx::wait_for_dependency();
  }
  float d[8][4] = {};
  const std::uint32_t ones[4] = {0x3f803f80u, 0x3f803f80u, 0x3f803f80u, 0x3f803f80u};
  for (int turn = 0; turn < kFaultTurns; ++turn) {
    const int stage = turn % 2;
    smem.full[stage].wait(turn / 2 % 2);
    ptx::wgmma_pin(d);
    if constexpr (kFault != Fault::product_fence) ptx::wgmma_fence();
    const std::uint64_t tile = ptx::wgmma_columns(shared_address(smem.tile[stage]), 8192);
    for (int step = 0; step < 4; ++step) ptx::wgmma_m64n64k16_columns<__nv_bfloat16>(d, ones, tile + 128 * step);
    ptx::wgmma_commit();
    if constexpr (kFault != Fault::product_wait && kFault != Fault::arrival) ptx::wgmma_wait<0>();
    ptx::wgmma_pin(d);
    if (thread % 32 == 0) smem.free[stage].arrive();
    if constexpr (kFault == Fault::arrival) ptx::wgmma_wait<0>();
    if constexpr (kFault == Fault::product_wait) ptx::wgmma_wait<1>();
  }
  if (thread < 4)  // row 0 of the first warp
    for (int n = 0; n < 8; ++n)
      for (int e = 0; e < 2; ++e) p.sums[8 * n + 2 * thread + e] = d[n][e];
  if constexpr (kFault == Fault::product_wait) ptx::wgmma_wait<0>();
  ptx::wait_for_dependency();
}

template <Fault kFault>
__global__ void copy_out(const __grid_constant__ Params p) {
  if constexpr (kFault != Fault::dependency) ptx::wait_for_dependency();
  p.out[threadIdx.x] = p.sums[threadIdx.x];
  if constexpr (kFault == Fault::alignment) {
    const float2 pair = *reinterpret_cast<const float2*>(p.sums + 1);
    p.out[0] = pair.x + pair.y;
  }
  if constexpr (kFault == Fault::dependency) ptx::wait_for_dependency();
}

template <Fault kFault>
void launch(const Params& p) {
  runtime::launch("produce", produce<kFault>, 1, kGroup, kBytes, nullptr, p);
  runtime::launch_dependent<consume<kFault>>("consume", 1, kGroup + 32, sizeof(Smem), nullptr, p);
  runtime::launch_dependent<copy_out<kFault>>("copy_out", 1, kFaultSums, 0, nullptr, p);
}
using Launch = void (*)(const Params&);
constexpr Launch kLaunches[] = {launch<Fault::none>,       launch<Fault::barrier>,      launch<Fault::proxy_fence>,
                                launch<Fault::store_wait>, launch<Fault::store_done>,   launch<Fault::flag>,
                                launch<Fault::overtaken>,  launch<Fault::parity>,       launch<Fault::missing_arrival>,
                                launch<Fault::arrival>,    launch<Fault::product_wait>, launch<Fault::product_fence>,
                                launch<Fault::dependency>, launch<Fault::alignment>};

}  // namespace deltagauge::kernels::host_faults

namespace deltagauge::host {

using namespace kernels::host_faults;

std::vector<float> sums_of_tiles(const Options& options, Fault fault) {
  struct alignas(16) Memory {
    __nv_bfloat16 tiles[kFaultTurns * kElements];
    std::uint32_t there[kFaultTurns] = {};
    alignas(8) float sums[kFaultSums], out[kFaultSums];
  };
  const auto memory = std::make_unique<Memory>();
  std::fill(std::begin(memory->tiles), std::end(memory->tiles), __nv_bfloat16{0x7fff});
  execute(options, [&] {
    kLaunches[static_cast<std::size_t>(fault)]({memory->tiles, memory->there, memory->sums, memory->out});
  });
  return {std::begin(memory->out), std::end(memory->out)};
}

std::vector<float> right_sums_of_tiles() {
  std::vector<float> sums(kFaultSums);
  for (int turn = 0; turn < kFaultTurns; ++turn)
    for (int row = 0; row < kRows; ++row)
      for (int column = 0; column < kFaultSums; ++column)
        sums[static_cast<std::size_t>(column)] += static_cast<float>(element(turn, row, column));
  return sums;
}

}  // namespace deltagauge::host
