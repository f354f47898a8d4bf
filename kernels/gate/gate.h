// Gate transform (docs/math.md#gate): raw gate projection x to natural-log decay g, in FP32. y = x + dt_bias, a = exp(A_log)
//   softplus: g = -a (max(y, 0) + log1p(exp(-|y|)))        bounded: g = lower_bound sigmoid(a y)
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.h"

namespace deltagauge::kernels::gate {

enum class Transform { softplus, bounded };

struct Args {
  const void* x = nullptr;                   // [T, HV] or, per channel, [T, HV, K]; io, device
  const float* A_log = nullptr;              // [HV] device, or null: a = 1
  const float* dt_bias = nullptr;            // [HV] or [HV, K], device
  float* g = nullptr;                        // as x, f32, device. Rows at and past cu_seqlens[N] are left as they are
  const std::int32_t* cu_seqlens = nullptr;  // [N + 1] device, or null: all T rows are active
  std::int64_t T = 0, N = 0, HV = 0, K = 1;  // K = 1 means per head; N is read with cu_seqlens only
  DType io = DType::bf16;                    // f32 bf16 f16
  Transform transform = Transform::softplus;
  float lower_bound = -5;  // bounded only: finite, <= 0
  bool fast_math = false;
};

// Why args cannot be run (expected and got), or nothing. Looks at sizes and dtypes only.
std::optional<std::string> unsupported(const Args& args);
void fwd(const Args& args, void* stream);  // throws Error with expected and got; never allocates or synchronises

}  // namespace deltagauge::kernels::gate
