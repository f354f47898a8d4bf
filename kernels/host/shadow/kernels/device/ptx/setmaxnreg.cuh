// In place of kernels/device/ptx/setmaxnreg.cuh, on the CPU, where registers do not count.
#pragma once

namespace deltagauge::kernels::ptx {

template <int kRegisters>
void setmaxnreg_inc() {}
template <int kRegisters>
void setmaxnreg_dec() {}

}  // namespace deltagauge::kernels::ptx
