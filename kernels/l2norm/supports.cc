// What l2norm takes. Plain C++, so that it can be asked without CUDA.
#include "kernels/l2norm/l2norm.h"
#include "kernels/runtime/arguments.h"

namespace deltagauge::kernels::l2norm {

std::optional<std::string> unsupported(const Args& args) {
  if (const auto reason = runtime::not_among("io", args.io, "f32 bf16 f16")) return reason;
  if (args.K < 1 || args.K > kMaxK)
    return "K: expected a value in [1, " + std::to_string(kMaxK) + "], got " + std::to_string(args.K);
  return std::nullopt;
}

}  // namespace deltagauge::kernels::l2norm
