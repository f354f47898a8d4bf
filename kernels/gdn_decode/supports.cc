// What gdn_decode takes. Plain C++, so that it can be asked without CUDA.
#include "kernels/gdn_decode/gdn_decode.h"
#include "kernels/runtime/arguments.h"

namespace deltagauge::kernels::gdn_decode {

std::optional<std::string> unsupported(const Args& args) {
  constexpr std::int64_t kMaxHeadSize = 256;
  constexpr std::int64_t kMaxPairs = (std::int64_t{1} << 31) / 64 - 1;  // 64 warps of 4 rows to a pair at K = V = 256
  if (const auto reason = runtime::not_among("io", args.io, "f32 bf16 f16")) return reason;
  if (const auto reason = runtime::not_among("state", args.state, "f32 bf16")) return reason;
  if (const auto reason = runtime::not_among("gate_dtype", args.gate_dtype, "f32 bf16 f16")) return reason;
  if (const auto reason = runtime::not_among("beta_dtype", args.beta_dtype, "f32 bf16 f16")) return reason;
  if (args.K < 1 || args.K > kMaxHeadSize || args.V < 1 || args.V > kMaxHeadSize)
    return "head sizes: expected K and V in [1, 256], got K = " + std::to_string(args.K) + ", V = " + std::to_string(args.V);
  if (args.HV > 0 && args.B > kMaxPairs / args.HV)
    return "B * HV: expected at most " + std::to_string(kMaxPairs) + ", got B = " + std::to_string(args.B) +
           ", HV = " + std::to_string(args.HV);
  return std::nullopt;
}

}  // namespace deltagauge::kernels::gdn_decode
