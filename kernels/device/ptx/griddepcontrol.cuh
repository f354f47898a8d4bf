// griddepcontrol (PTX ISA, "Parallel synchronization and communication: griddepcontrol"), sm_90 and later; nothing below,
// where no kernel starts before the one ahead of it has ended. Of kernels that runtime::launch_dependent launches.
#pragma once

namespace deltagauge::kernels::ptx {

// Waits until the kernel ahead of this one in the stream has ended and its writes are visible to this thread. No access to
// global memory and no return may come before it: a thread sees only what it waited for itself.
__device__ inline void wait_for_dependency() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
// Lets the kernel behind this one start once every block has said so or ended.
__device__ inline void launch_dependents() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

}  // namespace deltagauge::kernels::ptx
