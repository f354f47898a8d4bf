// barrier.sync.aligned, barrier.arrive.aligned (PTX ISA, "Parallel synchronization and communication: barrier").
#pragma once

namespace deltagauge::kernels::ptx {

// Orders the shared-memory accesses of the first threads that get here, a multiple of 32. Barrier 0 is __syncthreads().
template <int kThreads>
__device__ void barrier_sync(int barrier) {
  asm volatile("barrier.sync.aligned %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}
// The same without waiting for the others: this warp's accesses come before what they do after it.
template <int kThreads>
__device__ void barrier_arrive(int barrier) {
  asm volatile("barrier.arrive.aligned %0, %1;" ::"r"(barrier), "n"(kThreads) : "memory");
}

}  // namespace deltagauge::kernels::ptx
