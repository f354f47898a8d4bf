// In place of kernels/device/ptx/cp_async.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

inline void cp_async_16(std::uint32_t shared, const void* global) { host::cp_async_16(shared, global, true); }
inline void cp_async_16_or_zero(std::uint32_t shared, const void* global, bool valid) {
  host::cp_async_16(shared, global, valid);
}
inline void cp_async_commit() { host::cp_async_commit(); }
template <int kPending>
void cp_async_wait() {
  host::cp_async_wait(kPending);
}

}  // namespace deltagauge::kernels::ptx
