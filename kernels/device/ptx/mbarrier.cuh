// mbarrier (PTX ISA, "Parallel synchronization and communication: mbarrier") in the shared memory of the block, and the
// fence between ordinary accesses and those of wgmma.
#pragma once
#include <cstdint>
#include <cuda/ptx>

namespace deltagauge::kernels::ptx {

struct Mbarrier {
  std::uint64_t word;

  // count: arrivals that end a phase. One thread; fence_mbarrier_init() and a barrier before others use it.
  __device__ void init(std::uint32_t count) { cuda::ptx::mbarrier_init(&word, count); }
  // Releases this thread's earlier accesses.
  __device__ void arrive() { cuda::ptx::mbarrier_arrive(&word); }
  // The same, and the phase lasts until so many bytes of bulk copies have come too.
  __device__ void arrive_expect(std::uint32_t bytes) {
    cuda::ptx::mbarrier_arrive_expect_tx(cuda::ptx::sem_release, cuda::ptx::scope_cta, cuda::ptx::space_shared, &word,
                                         bytes);
  }
  // Whether the phase of this parity has ended. The phase before the first counts as ended with parity 1.
  // Answers at once, where try_wait may sleep.
  __device__ bool ended(std::uint32_t parity) { return cuda::ptx::mbarrier_test_wait_parity(&word, parity); }
  __device__ void wait(std::uint32_t parity) {
    while (!ended(parity)) {
    }
  }
  // Leaves the issue slots to others; wakes later.
  __device__ void wait_asleep(std::uint32_t parity) {
    while (!cuda::ptx::mbarrier_try_wait_parity(&word, parity)) {
    }
  }
};
__device__ inline void fence_mbarrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// What this thread wrote to shared memory is seen by wgmma after the next barrier.
__device__ inline void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

}  // namespace deltagauge::kernels::ptx
