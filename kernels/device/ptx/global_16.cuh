// ld.global and st.global (PTX ISA, "Data movement and conversion: ld, st"): 16 bytes, each one access as written. From C++
// the compiler splits some of a row of such accesses into words.
#pragma once
#include <vector_types.h>

namespace deltagauge::kernels::ptx {

// Address: a multiple of 16.
__device__ inline uint4 load_global_16(const void* from) {
  uint4 d;
  asm volatile("ld.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(d.x), "=r"(d.y), "=r"(d.z), "=r"(d.w)
               : "l"(from)
               : "memory");
  return d;
}
__device__ inline void store_global_16(void* to, uint4 x) {
  asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(to), "r"(x.x), "r"(x.y), "r"(x.z), "r"(x.w) : "memory");
}

}  // namespace deltagauge::kernels::ptx
