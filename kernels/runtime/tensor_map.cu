#include "kernels/runtime/tensor_map.cuh"

#include <cuda_runtime_api.h>

#include "core/error.h"
#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {
namespace {

using Encode = decltype(&cuTensorMapEncodeTiled);

// The driver's own function, so that nothing links against the driver.
Encode find_encode() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult found{};
  check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000, cudaEnableDefault, &found),
        "cuTensorMapEncodeTiled");
  if (found != cudaDriverEntryPointSuccess || function == nullptr)
    fail("cuTensorMapEncodeTiled: expected a driver of CUDA 12.0 or later, got one without it");
  return reinterpret_cast<Encode>(function);
}

}  // namespace

CUtensorMap rows_map(const char* what, const void* base, std::int64_t rows, std::int64_t heads, std::int64_t channels,
                     int box_rows, int box_channels) {
  static const Encode encode = find_encode();
  CUtensorMap map{};
  const cuuint64_t sizes[] = {static_cast<cuuint64_t>(channels), static_cast<cuuint64_t>(heads),
                              static_cast<cuuint64_t>(rows)};
  const cuuint64_t strides[] = {2 * sizes[0], 2 * sizes[0] * sizes[1]};
  const cuuint32_t box[] = {static_cast<cuuint32_t>(box_channels), 1, static_cast<cuuint32_t>(box_rows)};
  const cuuint32_t steps[] = {1, 1, 1};
  const CUresult result = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 3, const_cast<void*>(base), sizes, strides, box,
                                 steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                                 CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS)
    fail(what, ": cuTensorMapEncodeTiled: expected success for [", rows, ", ", heads, ", ", channels, "], got CUresult ",
         static_cast<int>(result));
  return map;
}

}  // namespace deltagauge::kernels::runtime
