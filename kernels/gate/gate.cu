// The gate transform: checks the arguments, launches. The precise kernels are built here.
#include "kernels/gate/gate.h"

#include <cmath>

#include "kernels/gate/gate.cuh"

namespace deltagauge::kernels::gate {

void fwd(const Args& args, void* stream) {
  constexpr std::string_view kOp = "gate.fwd";
  runtime::require_size(kOp, "T", args.T, 0);
  runtime::require_size(kOp, "N", args.N, 0);
  runtime::require_size(kOp, "HV", args.HV, 1);
  runtime::require_size(kOp, "K", args.K, 1);
  if (const auto reason = unsupported(args)) fail(kOp, ": ", *reason);
  if (args.transform == Transform::bounded && !(std::isfinite(args.lower_bound) && args.lower_bound <= 0))
    fail(kOp, ": lower_bound: expected a finite number <= 0, got ", args.lower_bound);
  if (args.T == 0) return;
  runtime::require_pointer(kOp, "x", args.x, size_of(args.io));
  runtime::require_pointer(kOp, "dt_bias", args.dt_bias, sizeof(float));
  runtime::require_pointer(kOp, "g", args.g, sizeof(float));
  runtime::require_aligned(kOp, "A_log", args.A_log, sizeof(float));
  runtime::require_aligned(kOp, "cu_seqlens", args.cu_seqlens, sizeof(std::int32_t));

  const auto on = static_cast<cudaStream_t>(stream);
  if (args.fast_math) return launch_fast(args, on);
  launch_as<Precise>(args, on);
}

}  // namespace deltagauge::kernels::gate
