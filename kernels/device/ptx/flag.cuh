// Flags in global memory between blocks (PTX ISA, "Memory consistency model": release and acquire patterns).
#pragma once
#include <cstdint>

namespace deltagauge::kernels::ptx {

// Sets a flag; what this thread wrote or saw written, bulk copies among it, is seen by those who acquire it.
__device__ inline void release(std::uint32_t* flag) {
  asm volatile("fence.proxy.async.global; st.release.gpu.global.u32 [%0], 1;" ::"l"(flag) : "memory");
}
// Waits for it. Bulk copies by this thread see what was released, too.
__device__ inline void acquire(const std::uint32_t* flag) {
  std::uint32_t set = 0;
  while (true) {
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(set) : "l"(flag) : "memory");
    if (set != 0) break;
    __nanosleep(40);
  }
  asm volatile("fence.proxy.async.global;" ::: "memory");
}

}  // namespace deltagauge::kernels::ptx
