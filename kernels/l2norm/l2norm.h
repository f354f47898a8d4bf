// Row normalisation (docs/math.md#l2norm): y = x / sqrt(sum x^2 + 1e-6), the eps on the sum. FP32 inside.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.h"

namespace deltagauge::kernels::l2norm {

struct Args {
  const void* x = nullptr;  // [T, H, K] io, device
  void* y = nullptr;        // [T, H, K] io, device
  const std::int32_t* cu_seqlens = nullptr;  // [N + 1] device, or null: all T rows are active
  std::int64_t T = 0, N = 0, H = 0, K = 0;   // K <= 1024
  DType io = DType::bf16;   // f32 bf16 f16
};

std::optional<std::string> unsupported(const Args& args);
void fwd(const Args& args, void* stream);  // throws Error with expected and got; never allocates or synchronises

}  // namespace deltagauge::kernels::l2norm
