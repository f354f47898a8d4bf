// cp.async.bulk (PTX ISA, "Data movement and conversion: cp.async.bulk"), sm_90: one thread copies a run of bytes between
// global and shared memory. Addresses and sizes are multiples of 16.
#pragma once
#include "kernels/device/ptx/mbarrier.cuh"

namespace deltagauge::kernels::ptx {

// To shared memory; the bytes count towards barrier's phase (Mbarrier::arrive_expect).
__device__ inline void bulk_load(void* shared, const void* global, std::uint32_t bytes, Mbarrier& barrier) {
  cuda::ptx::cp_async_bulk(cuda::ptx::space_cluster, cuda::ptx::space_global, shared, global, bytes, &barrier.word);
}
// To global memory, committed. What other threads wrote to shared needs fence_async_shared() and a barrier before.
__device__ inline void bulk_store(void* global, const void* shared, std::uint32_t bytes) {
  cuda::ptx::cp_async_bulk(cuda::ptx::space_global, cuda::ptx::space_shared, global, shared, bytes);
  cuda::ptx::cp_async_bulk_commit_group();
}
// Waits until all but the last kPending of this thread's stores have read shared memory.
template <int kPending = 0>
__device__ void bulk_store_wait() {
  cuda::ptx::cp_async_bulk_wait_group_read(cuda::ptx::n32_t<kPending>{});
}
// Waits until this thread's stores are in global memory, where it sees them.
__device__ inline void bulk_store_wait_done() { cuda::ptx::cp_async_bulk_wait_group(cuda::ptx::n32_t<0>{}); }

}  // namespace deltagauge::kernels::ptx
