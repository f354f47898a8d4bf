// In place of kernels/device/ptx/barrier.cuh, on the CPU.
#pragma once
#include "kernels/host/device.h"

namespace deltagauge::kernels::ptx {

template <int kThreads>
void barrier_sync(int barrier) {
  host::barrier_sync(barrier, kThreads);
}
template <int kThreads>
void barrier_arrive(int barrier) {
  host::barrier_arrive(barrier, kThreads);
}

}  // namespace deltagauge::kernels::ptx
