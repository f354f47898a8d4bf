// In place of CUDA's header of that name: the language's own words and the functions kernels call.
#pragma once
#include <math.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "kernels/host/device.h"
#include "kernels/host/shadow/cuda_runtime_api.h"

#define __device__
#define __host__
#define __global__
#define __grid_constant__
#define __launch_bounds__(...)
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __shared__ thread_local  // a block is a host thread

extern uint3 threadIdx, blockIdx, blockDim, gridDim;

inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline int min(int a, int b) { return a < b ? a : b; }
inline int max(int a, int b) { return a > b ? a : b; }
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(unsigned x) { return x == 0 ? 0 : std::countr_zero(x) + 1; }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>(std::uint64_t{a} * b >> 32); }
inline unsigned __byte_perm(unsigned a, unsigned b, unsigned select) {
  const std::uint64_t both = std::uint64_t{b} << 32 | a;
  unsigned d = 0;
  for (int i = 0; i < 4; ++i) d |= static_cast<unsigned>(both >> (select >> 4 * i & 7) * 8 & 0xff) << 8 * i;
  return d;
}
inline long long __double2ll_rn(double x) { return std::isnan(x) ? INT64_MIN : std::llrint(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float rsqrtf(float x) { return 1.0f / std::sqrt(x); }
template <class T>
T __ldcs(const T* from) {
  return *from;
}
template <class T>
void __stcs(T* to, const T& x) {
  *to = x;
}
[[noreturn]] inline void __trap() { deltagauge::host::undefined("__trap()"); }

inline void __syncthreads() { deltagauge::host::sync_threads(); }
inline void __syncwarp(unsigned mask = 0xffffffffu) { deltagauge::host::sync_warp(mask); }
inline std::uint32_t __cvta_generic_to_shared(const void* p) { return deltagauge::host::shared_address(p); }

template <class T>
T __shfl_sync(unsigned mask, T x, unsigned lane) {
  return deltagauge::host::shuffle(mask, x, lane % 32);
}
template <class T>
T __shfl_up_sync(unsigned mask, T x, unsigned lanes) {
  const unsigned own = deltagauge::host::lane();
  return deltagauge::host::shuffle(mask, x, own >= lanes ? own - lanes : own);
}
template <class T>
T __shfl_xor_sync(unsigned mask, T x, unsigned lanes) {
  return deltagauge::host::shuffle(mask, x, deltagauge::host::lane() ^ lanes);
}
inline unsigned __ballot_sync(unsigned mask, bool x) { return deltagauge::host::ballot(mask, x); }
inline bool __any_sync(unsigned mask, bool x) { return deltagauge::host::ballot(mask, x) != 0; }
