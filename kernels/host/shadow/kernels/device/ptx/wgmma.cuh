// In place of kernels/device/ptx/wgmma.cuh, on the CPU.
#pragma once
#include "kernels/device/ptx/mma_m16n8k16.cuh"

namespace deltagauge::kernels::ptx {

inline void wgmma_fence() { host::wgmma_fence(); }
inline void wgmma_commit() { host::wgmma_commit(); }
template <int kPending>
void wgmma_wait() {
  host::wgmma_wait(kPending);
}
template <int kCount>
void wgmma_pin(float (&)[kCount][4]) {}

inline std::uint64_t wgmma_rows(std::uint32_t address) {
  return std::uint64_t{(address & 0x3ffff) >> 4} | std::uint64_t{1} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}
inline std::uint64_t wgmma_columns(std::uint32_t address, std::uint32_t tile_bytes) {
  return std::uint64_t{(address & 0x3ffff) >> 4} | std::uint64_t{tile_bytes >> 4} << 16 | std::uint64_t{1024 >> 4} << 32 |
         std::uint64_t{1} << 62;
}

template <class T>
void wgmma_m64n64k16(float (&d)[8][4], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  host::wgmma({kFormat<T>, 64, d, a, b, false, add});
}
template <class T>
void wgmma_m64n128k16(float (&d)[16][4], const std::uint32_t (&a)[4], std::uint64_t b) {
  host::wgmma({kFormat<T>, 128, d, a, b, false, true});
}
template <class T>
void wgmma_m64n64k16_columns(float (&d)[8][4], const std::uint32_t (&a)[4], std::uint64_t b) {
  host::wgmma({kFormat<T>, 64, d, a, b, true, true});
}
template <class T>
void wgmma_m64n128k16_columns(float (&d)[16][4], const std::uint32_t (&a)[4], std::uint64_t b) {
  host::wgmma({kFormat<T>, 128, d, a, b, true, true});
}
inline void wgmma_m64n64k8_tf32(float (&d)[8][4], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  host::wgmma({host::Format::tf32, 64, d, a, b, false, add});
}
inline void wgmma_m64n32k8_tf32(float (&d)[4][4], const std::uint32_t (&a)[4], std::uint64_t b, bool add) {
  host::wgmma({host::Format::tf32, 32, d, a, b, false, add});
}

}  // namespace deltagauge::kernels::ptx
