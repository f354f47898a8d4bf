// Math policies: the functions a kernel takes from its Math template parameter, precise or fast. They are explicit about
// what is approximate, so no file is compiled with --use_fast_math (which would also flush subnormals of the state).
// u = 2^-24; error bounds are relative unless said otherwise, from the CUDA and PTX manuals.
#pragma once

namespace deltagauge::kernels {

struct Precise {
  static __device__ float exp(float x) { return expf(x); }                   // 2^-23
  static __device__ float log1p(float t) { return log1pf(t); }               // 2^-23
  static __device__ float divide(float a, float b) { return a / b; }         // u
  static __device__ float inverse_sqrt(float x) { return 1.0f / sqrtf(x); }  // 2 u
};

struct Fast {
  // 2^-22 + |x| u: the rounding of x log2(e) is not made good. Subnormal results are kept; -inf gives 0.
  static __device__ float exp(float x) { return exp2f(x * 1.44269504f); }
  // For t in [0, 1]: 2 atanh(s) with s = t / (2 + t) <= 1/3 by its series; s^16 / 17 < 2^-29 is cut off. Unlike
  // lg2.approx(1 + t) it keeps its relative accuracy as t falls to 0.
  static __device__ float log1p(float t) {
    const float s = __fdividef(t, 2.0f + t), z = s * s;
    float p = 1.0f / 15;
    p = fmaf(p, z, 1.0f / 13);
    p = fmaf(p, z, 1.0f / 11);
    p = fmaf(p, z, 1.0f / 9);
    p = fmaf(p, z, 1.0f / 7);
    p = fmaf(p, z, 1.0f / 5);
    p = fmaf(p, z, 1.0f / 3);
    return 2.0f * fmaf(p * z, s, s);
  }
  static __device__ float divide(float a, float b) { return __fdividef(a, b); }  // 2^-22 for 2^-126 <= b <= 2^126
  static __device__ float inverse_sqrt(float x) { return rsqrtf(x); }            // 2^-22
};

}  // namespace deltagauge::kernels
