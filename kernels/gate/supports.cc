// What gate takes. Plain C++, so that it can be asked without CUDA.
#include <limits>

#include "kernels/gate/gate.h"
#include "kernels/runtime/arguments.h"

namespace deltagauge::kernels::gate {

std::optional<std::string> unsupported(const Args& args) {
  if (const auto reason = runtime::not_among("io", args.io, "f32 bf16 f16")) return reason;
  constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();  // columns are counted in 32 bits
  if (args.HV > 0 && args.K > kMost / args.HV)
    return "HV * K: expected at most " + std::to_string(kMost) + ", got HV = " + std::to_string(args.HV) +
           ", K = " + std::to_string(args.K);
  return std::nullopt;
}

}  // namespace deltagauge::kernels::gate
