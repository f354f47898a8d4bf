// In place of kernels/device/ptx/flag.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

inline void fence_global() {}
inline void release(std::uint32_t* flag, std::uint32_t bits = 1) { host::release(flag, bits); }
class FlagRun {
 public:
  FlagRun(const std::uint32_t* flags, std::int64_t stride, int) : flags_(flags), stride_(stride) {}
  template <bool kBulk = true>
  std::uint32_t acquire(int i) { return host::acquire(flags_ + i * stride_); }

 private:
  const std::uint32_t* flags_;
  std::int64_t stride_;
};

}  // namespace deltagauge::kernels::ptx
