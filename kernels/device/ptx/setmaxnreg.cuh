// setmaxnreg (PTX ISA, "Miscellaneous instructions: setmaxnreg"), sm_90a: registers a thread of this warpgroup may use, a
// multiple of 8. Every warp of the group gets here together.
#pragma once

namespace deltagauge::kernels::ptx {

template <int kRegisters>
__device__ void setmaxnreg_inc() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(kRegisters));
}
template <int kRegisters>
__device__ void setmaxnreg_dec() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(kRegisters));
}

}  // namespace deltagauge::kernels::ptx
