// The gate of a token and value head from its raw one, where Args.transform asks for it (gdn.h), in FP32.
#pragma once
#include "kernels/device/gate.cuh"
#include "kernels/gdn/gdn.h"

namespace deltagauge::kernels::gdn {

// What the gates of a value head share.
struct HeadGate {
  float dt_bias;
  GateScale scale;
};
__device__ inline HeadGate head_gate(const Args& a, std::int64_t h) {
  if (a.transform == Transform::none) return {};
  return {a.dt_bias[h], head_scale(a.A_log, static_cast<std::uint32_t>(h))};
}

template <class Math>
__device__ float transform_gate(const Args& a, float raw, const HeadGate& head) {
  const float y = raw + head.dt_bias;
  return a.transform == Transform::bounded ? bounded_gate<Math>(y, head.scale, a.lower_bound)
                                           : softplus_gate<Math>(y, head.scale);
}

}  // namespace deltagauge::kernels::gdn
