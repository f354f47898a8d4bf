// Special registers (PTX ISA, "Special registers"), read where they are asked for: what follows from them is then neither
// kept in registers from there on, nor found again where it is.
#pragma once
#include <cstdint>

namespace deltagauge::kernels::ptx {

__device__ inline int lane_id() {
  int lane;
  asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
  return lane;
}
__device__ inline int thread_id() {
  int thread;
  asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
  return thread;
}

__device__ inline int block_id() {
  int block;
  asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(block));
  return block;
}

}  // namespace deltagauge::kernels::ptx
