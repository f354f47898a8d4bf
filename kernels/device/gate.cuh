// The gates g = -exp(A_log) softplus(y) and lower_bound sigmoid(exp(A_log) y) in FP32, and the sigmoid.
#pragma once
#include <cstdint>

#include "kernels/device/math.cuh"

namespace deltagauge::kernels {

// exp(A_log) of one head, with full accuracy in either mode: it scales everything.
struct GateScale {
  float a, A_log;
};
__device__ inline GateScale gate_scale(float A_log) { return {Precise::exp(A_log), A_log}; }
// Without A_log a is exactly 1.
__device__ inline GateScale head_scale(const float* A_log, std::uint32_t head) {
  return A_log == nullptr ? GateScale{1.0f, 0.0f} : gate_scale(A_log[head]);
}

// a y. exp(A_log) may pass the largest f32 where the product does not: then its root is taken twice. a 0 is 0, always.
__device__ inline float times(const GateScale& scale, float y) {
  if (y == 0.0f) return y;
  if (!isinf(scale.a)) return scale.a * y;
  const float root = Precise::exp(0.5f * scale.A_log);
  return root * y * root;
}

// A result passes the largest f32 only where its exact value does; NaN comes from NaN alone.
template <class Math>
__device__ float softplus_gate(float y, const GateScale& scale) {
  return -times(scale, fmaxf(y, 0.0f) + Math::log1p(Math::exp(-fabsf(y))));
}

// numerator sigmoid(z).
template <class Math>
__device__ float scaled_sigmoid(float numerator, float z) {
  const float t = Math::exp(-fabsf(z));
  return Math::divide(z < 0.0f ? numerator * t : numerator, 1.0f + t);
}

template <class Math>
__device__ float bounded_gate(float y, const GateScale& scale, float lower_bound) {
  return scaled_sigmoid<Math>(lower_bound, times(scale, y));
}

}  // namespace deltagauge::kernels
