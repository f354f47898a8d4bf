// In place of kernels/device/ptx/bulk.cuh, on the CPU.
#pragma once
#include "kernels/device/ptx/mbarrier.cuh"

namespace deltagauge::kernels::ptx {

inline void bulk_load(void* shared, const void* global, std::uint32_t bytes, Mbarrier& barrier) {
  host::bulk_load(shared, global, bytes, &barrier.word);
}
inline void bulk_store(void* global, const void* shared, std::uint32_t bytes) { host::bulk_store(global, shared, bytes); }
template <int kPending = 0>
void bulk_store_wait() {
  host::bulk_store_wait_read(kPending);
}
inline void bulk_store_wait_done() { host::bulk_store_wait_done(); }

}  // namespace deltagauge::kernels::ptx
