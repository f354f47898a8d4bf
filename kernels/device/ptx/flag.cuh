// Flags in global memory between blocks (PTX ISA, "Memory consistency model": release and acquire patterns).
#pragma once
#include <cstdint>

namespace deltagauge::kernels::ptx {

// What this thread wrote or saw written is seen by who starts after it (griddepcontrol.cuh).
__device__ inline void fence_global() { asm volatile("fence.acq_rel.gpu;" ::: "memory"); }

// Sets bits of a flag; what this thread wrote or saw written, bulk copies among it, is seen by those who acquire bit 0.
__device__ inline void release(std::uint32_t* flag, std::uint32_t bits = 1) {
  asm volatile("fence.proxy.async.global; red.release.gpu.global.or.b32 [%0], %1;" ::"l"(flag), "r"(bits) : "memory");
}
// A warp: flags of things in a row, of which those that are set stand at the front as a rule, so that few looks find many.
class FlagRun {
 public:
  // count flags, stride apart.
  __device__ FlagRun(const std::uint32_t* flags, std::int64_t stride, int count)
      : flags_(flags), stride_(stride), count_(count) {}
  // Waits for bit 0 of flag i; all its bits. i does not fall from call to call. kBulk: bulk copies by these threads see what
  // was released, too.
  template <bool kBulk = true>
  __device__ std::uint32_t acquire(int i) {
    if (i >= known_) {
      const int own = i + static_cast<int>(threadIdx.x % 32);
      while (true) {
        said_ = 1;
        if (own < count_)
          asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(said_) : "l"(flags_ + own * stride_) : "memory");
        const unsigned missing = ~__ballot_sync(0xffffffffu, (said_ & 1) != 0);
        known_ = i + (missing == 0 ? 32 : __ffs(missing) - 1);
        if (i < known_) break;
        __nanosleep(40);
      }
      first_ = i;
      if constexpr (kBulk) asm volatile("fence.proxy.async.global;" ::: "memory");
    }
    return __shfl_sync(0xffffffffu, said_, i - first_);
  }

 private:
  const std::uint32_t* flags_;
  std::int64_t stride_;
  int count_, first_ = 0, known_ = 0;  // flags first_ .. known_ - 1 are set
  std::uint32_t said_ = 0;             // flag first_ + lane
};

}  // namespace deltagauge::kernels::ptx
