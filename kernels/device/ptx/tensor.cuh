// cp.async.bulk.tensor (PTX ISA, "Data movement and conversion: cp.async.bulk.tensor"), sm_90: one thread copies a box of a
// [rows, heads, channels] tensor (kernels/runtime/tensor_map.cuh) between global and shared memory. Coordinates of its first
// element; shared addresses are multiples of 128, in the 128-byte swizzle of 1024.
#pragma once
#include <cuda.h>

#include "kernels/device/ptx/bulk.cuh"

namespace deltagauge::kernels::ptx {

// To shared memory; the bytes count towards barrier's phase (Mbarrier::arrive_expect).
__device__ inline void tensor_load(void* shared, const CUtensorMap& map, int row, int head, int channel, Mbarrier& barrier) {
  const std::int32_t at[] = {channel, head, row};
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_cluster, cuda::ptx::space_global, shared, &map, at, &barrier.word);
}
// To global memory, committed; as bulk_store().
__device__ inline void tensor_store(const CUtensorMap& map, int row, int head, int channel, const void* shared) {
  const std::int32_t at[] = {channel, head, row};
  cuda::ptx::cp_async_bulk_tensor(cuda::ptx::space_global, cuda::ptx::space_shared, &map, at, shared);
  cuda::ptx::cp_async_bulk_commit_group();
}

}  // namespace deltagauge::kernels::ptx
