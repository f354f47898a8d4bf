// Row normalisation (docs/math.md#l2norm): y = x / sqrt(sum x^2 + 1e-6), the eps on the sum. FP32 inside; a row whose
// sum of squares passes the largest FP32 value is scaled first.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "core/dtype.h"

namespace deltagauge::kernels::l2norm {

inline constexpr std::int64_t kMaxK = 1024;

struct Args {
  const void* x = nullptr;  // [T, H, K] io, device
  void* y = nullptr;        // [T, H, K] io, device; may be x itself. Rows at and past cu_seqlens[N] are left as they are
  const std::int32_t* cu_seqlens = nullptr;  // [N + 1] device, or null: all T rows are active
  std::int64_t T = 0, N = 0, H = 0, K = 0;   // K <= kMaxK; N is read with cu_seqlens only
  DType io = DType::bf16;                    // f32 bf16 f16
};

// Why args cannot be run (expected and got), or nothing. Looks at sizes and dtypes only.
std::optional<std::string> unsupported(const Args& args);
void fwd(const Args& args, void* stream);  // throws Error with expected and got; never allocates or synchronises

}  // namespace deltagauge::kernels::l2norm
