// ex2.approx.f32 (PTX ISA, "Floating point instructions: ex2").
#pragma once

namespace deltagauge::kernels::ptx {

// 2^x, relative error at most 2^-22, subnormal results included.
__device__ inline float ex2(float x) {
  float d;
  asm("ex2.approx.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

}  // namespace deltagauge::kernels::ptx
