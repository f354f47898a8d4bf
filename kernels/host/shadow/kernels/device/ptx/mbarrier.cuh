// In place of kernels/device/ptx/mbarrier.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

struct Mbarrier {
  std::uint64_t word;

  void init(std::uint32_t count) { host::mbarrier_init(&word, count); }
  void arrive() { host::mbarrier_arrive(&word, 0); }
  void arrive_expect(std::uint32_t bytes) { host::mbarrier_arrive(&word, bytes); }
  bool ended(std::uint32_t parity) { return host::mbarrier_ended(&word, parity); }
  void wait(std::uint32_t parity) { host::mbarrier_wait(&word, parity); }
  void wait_asleep(std::uint32_t parity) { host::mbarrier_wait(&word, parity); }
};
inline void fence_mbarrier_init() { host::fence_async(); }
inline void fence_async_shared() { host::fence_async(); }

}  // namespace deltagauge::kernels::ptx
