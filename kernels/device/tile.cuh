// 16-bit operands of mma_m16n8k16 on their way from global to shared memory to registers.
// A tile is kRows x kColumns elements in shared memory, row by row; the 16-byte blocks of row r stand at block ^ (r % 8), so
// that the 8 rows an ldmatrix reads fall into different banks. Tiles start at a multiple of 256 bytes.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "kernels/device/ptx/cp_async.cuh"
#include "kernels/device/ptx/ldmatrix.cuh"

namespace deltagauge::kernels {

// Two values as T in one register, the first in the low half; nearest, ties to even.
template <class T>
__device__ std::uint32_t pack2(float x, float y);
template <>
__device__ inline std::uint32_t pack2<__nv_bfloat16>(float x, float y) {
  const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}
template <>
__device__ inline std::uint32_t pack2<__half>(float x, float y) {
  const __half2 pair = __floats2half2_rn(x, y);
  return *reinterpret_cast<const std::uint32_t*>(&pair);
}

template <class T>
__device__ float2 unpack2(std::uint32_t pair);
template <>
__device__ inline float2 unpack2<__nv_bfloat16>(std::uint32_t pair) {
  return make_float2(__uint_as_float(pair << 16), __uint_as_float(pair & 0xffff0000u));
}
template <>
__device__ inline float2 unpack2<__half>(std::uint32_t pair) {
  return __half22float2(*reinterpret_cast<const __half2*>(&pair));
}

// x and y as hi + lo, each T: 16 bits of a value for bf16, 22 for f16.
struct SplitPair {
  std::uint32_t hi, lo;
};
template <class T>
__device__ SplitPair split2(float x, float y) {
  const std::uint32_t hi = pack2<T>(x, y);
  const float2 kept = unpack2<T>(hi);
  return {hi, pack2<T>(x - kept.x, y - kept.y)};
}

__device__ inline std::uint32_t shared_address(const void* p) {
  return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

template <int kColumns>
struct Tile {
  static constexpr int kRowBytes = 2 * kColumns, kBlocks = kRowBytes / 16;
  static_assert(kBlocks % 8 == 0);

  static __device__ constexpr int offset(int row, int block) { return row * kRowBytes + ((block ^ (row & 7)) << 4); }

  // Rows 0 .. kRows - 1 from global memory, stride elements apart (16-byte aligned), by kThreads threads, a power of two, in
  // a row; rows at and past valid are zeros and not read. To be committed and waited for by the caller.
  template <int kRows, int kThreads, class T>
  static __device__ void load(std::uint32_t tile, const T* global, std::int64_t stride, int valid) {
    static_assert(sizeof(T) == 2 && kThreads % kBlocks == 0 && kRows % (kThreads / kBlocks) == 0);
    constexpr int kStep = kThreads / kBlocks;  // rows between a thread's blocks
    const int thread = static_cast<int>(threadIdx.x) % kThreads, first = thread / kBlocks, block = thread % kBlocks;
    const T* from = global + first * stride + 8 * block;
    const std::uint32_t to = tile + offset(first, block);
#pragma unroll
    for (int i = 0; i < kRows; i += kStep, from += kStep * stride) {
      const std::uint32_t at = kStep % 8 == 0 ? to + i * kRowBytes : tile + offset(first + i, block);
      if (valid == kRows)
        ptx::cp_async_16(at, from);
      else
        ptx::cp_async_16_or_zero(at, from, first + i < valid);
    }
  }

  // Where this lane reads for ldmatrix: rows 0 .. 15, columns 0 .. 15. Add at(row, column) for others, both multiples of 16.
  // row_major: as operand a (rows m, columns k). The transposed load of the same gives operand b (rows k, columns n).
  static __device__ std::uint32_t row_major(int lane) {
    const int matrix = lane / 8;
    return offset((matrix & 1) * 8 + lane % 8, matrix >> 1);
  }
  // As operand b held with rows n and columns k: two n-blocks of 8, {b0, b1} of the first, then of the second.
  static __device__ std::uint32_t column_major(int lane) {
    const int matrix = lane / 8;
    return offset((matrix >> 1) * 8 + lane % 8, matrix & 1);
  }
  static __device__ constexpr std::uint32_t at(std::uint32_t address, int row, int column) {
    return (address ^ (2 * column)) + row * kRowBytes;
  }
};

}  // namespace deltagauge::kernels
