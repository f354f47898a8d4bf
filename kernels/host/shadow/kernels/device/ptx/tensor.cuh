// In place of kernels/device/ptx/tensor.cuh, on the CPU.
#pragma once
#include <cuda.h>

#include "kernels/device/ptx/bulk.cuh"

namespace deltagauge::kernels::ptx {

inline host::Box box_of(const CUtensorMap& map, int row, int head, int channel) {
  return {map.base + 2 * static_cast<std::uint64_t>(channel) + map.strides[0] * static_cast<std::uint64_t>(head) +
              map.strides[1] * static_cast<std::uint64_t>(row),
          map.strides[1], static_cast<int>(map.box[2]), static_cast<int>(map.sizes[2]) - row};
}
inline void tensor_load(void* shared, const CUtensorMap& map, int row, int head, int channel, Mbarrier& barrier) {
  host::tensor_load(shared, box_of(map, row, head, channel), &barrier.word);
}
inline void tensor_store(const CUtensorMap& map, int row, int head, int channel, const void* shared) {
  host::tensor_store(box_of(map, row, head, channel), shared);
}

}  // namespace deltagauge::kernels::ptx
