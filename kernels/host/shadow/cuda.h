// In place of CUDA's header of that name: tensor maps, of the one form that kernels/runtime/tensor_map.cu makes.
#pragma once
#include <cstdint>

#include "kernels/host/shadow/cuda_runtime_api.h"

using cuuint32_t = std::uint32_t;
using cuuint64_t = std::uint64_t;
enum CUresult : int { CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1 };
enum CUtensorMapDataType { CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 };
enum CUtensorMapInterleave { CU_TENSOR_MAP_INTERLEAVE_NONE };
enum CUtensorMapSwizzle { CU_TENSOR_MAP_SWIZZLE_128B };
enum CUtensorMapL2promotion { CU_TENSOR_MAP_L2_PROMOTION_L2_256B };
enum CUtensorMapFloatOOBfill { CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE };

// Of a tensor [sizes[2], sizes[1], sizes[0]] of 16-bit elements.
struct CUtensorMap {
  char* base;
  cuuint64_t sizes[3], strides[2];  // elements; bytes
  cuuint32_t box[3];
};
inline CUresult cuTensorMapEncodeTiled(CUtensorMap* map, CUtensorMapDataType, cuuint32_t rank, void* base,
                                       const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
                                       const cuuint32_t* /*steps*/, CUtensorMapInterleave, CUtensorMapSwizzle,
                                       CUtensorMapL2promotion, CUtensorMapFloatOOBfill) {
  if (rank != 3 || reinterpret_cast<std::uintptr_t>(base) % 16 != 0 || strides[0] % 16 != 0 || strides[1] % 16 != 0 ||
      2 * box[0] != 128 || box[1] != 1 || box[2] > 256)
    return CUDA_ERROR_INVALID_VALUE;
  *map = {static_cast<char*>(base), {sizes[0], sizes[1], sizes[2]}, {strides[0], strides[1]}, {box[0], box[1], box[2]}};
  return CUDA_SUCCESS;
}

enum cudaDriverEntryPointQueryResult { cudaDriverEntryPointSuccess };
enum { cudaEnableDefault };
inline cudaError_t cudaGetDriverEntryPointByVersion(const char*, void** function, unsigned, int,
                                                    cudaDriverEntryPointQueryResult* found) {
  *function = reinterpret_cast<void*>(cuTensorMapEncodeTiled);
  *found = cudaDriverEntryPointSuccess;
  return cudaSuccess;
}
