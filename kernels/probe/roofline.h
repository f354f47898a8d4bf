// The two ceilings of a device: bytes a second of a device-to-device copy, and dense bf16 tensor-core products a second.
#pragma once

namespace deltagauge::kernels::probe {

struct Ceilings {
  double copy_bytes_s = 0;    // bytes read plus bytes written
  double tensor_flops_s = 0;  // two operations a multiply-add; wgmma on sm_90a, mma.sync elsewhere
};

// What the device holds for some tenths of a second, on random operands; the copy is the faster of a kernel's and the
// driver's. Allocates 2 GiB, or a quarter of the free memory where that is less. Throws Error without a GPU.
Ceilings ceilings();

}  // namespace deltagauge::kernels::probe
