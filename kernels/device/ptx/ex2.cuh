// ex2.approx.ftz.f32 (PTX ISA, "Floating point instructions: ex2").
#pragma once

namespace deltagauge::kernels::ptx {

// 2^x, relative error at most 2^-22; results below 2^-126 are 0.
__device__ inline float ex2_ftz(float x) {
  float d;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(d) : "f"(x));
  return d;
}

}  // namespace deltagauge::kernels::ptx
