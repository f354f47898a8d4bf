// The gate of a token and value head from its raw one, where Args.transform asks for it (gdn.h), in FP32.
#pragma once
#include "kernels/device/gate.cuh"
#include "kernels/gdn/gdn.h"

namespace deltagauge::kernels::gdn {

template <class Math>
__device__ float transform_gate(const Args& a, float raw, std::uint32_t h) {
  const float y = raw + a.dt_bias[h];
  const GateScale scale = head_scale(a.A_log, h);
  return a.transform == Transform::bounded ? bounded_gate<Math>(y, scale, a.lower_bound) : softplus_gate<Math>(y, scale);
}

}  // namespace deltagauge::kernels::gdn
