// cp.async (PTX ISA, "Data movement and conversion: cp.async"): copies from global to shared memory past the registers.
#pragma once
#include <cstdint>

namespace deltagauge::kernels::ptx {

// 16 bytes from global to shared memory (address of either: a multiple of 16), through L2 alone.
__device__ inline void cp_async_16(std::uint32_t shared, const void* global) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(shared), "l"(global) : "memory");
}
// The same, or 16 zero bytes when valid is false: then global is not read.
__device__ inline void cp_async_16_or_zero(std::uint32_t shared, const void* global, bool valid) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(shared), "l"(global), "r"(valid ? 16 : 0) : "memory");
}
__device__ inline void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending of this thread's groups are under way.
template <int kPending>
__device__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

}  // namespace deltagauge::kernels::ptx
