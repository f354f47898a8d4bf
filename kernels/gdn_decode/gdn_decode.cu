// gdn_decode: checks the arguments, launches.
#include "kernels/gdn_decode/gdn_decode.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>

#include "kernels/device/math.cuh"
#include "kernels/gdn_decode/launch.cuh"
#include "kernels/runtime/arguments.h"

namespace deltagauge::kernels::gdn_decode {
namespace {

template <class Io>
void with_math(const Args& args, cudaStream_t stream) {
  if (args.fast_math) return launch_as<Io, Fast>(args, stream);
  launch_as<Io, Precise>(args, stream);
}

}  // namespace

void fwd(const Args& args, void* stream) {
  constexpr std::string_view kOp = "gdn_decode.fwd";
  runtime::require_size(kOp, "B", args.B, 0);
  runtime::require_size(kOp, "HK", args.HK, 1);
  runtime::require_size(kOp, "HV", args.HV, 1);
  if (args.HV % args.HK != 0) fail(kOp, ": HV: expected a multiple of HK = ", args.HK, ", got ", args.HV);
  if (const auto reason = unsupported(args)) fail(kOp, ": ", *reason);
  if (!std::isfinite(args.scale) || args.scale == 0)
    fail(kOp, ": scale: expected a finite number other than 0, got ", args.scale);
  runtime::require_size(kOp, "slots", args.slots, 1);
  runtime::require_size(kOp, "slot_stride", args.slot_stride, args.HV * args.V * args.K);
  if (args.B == 0) return;
  runtime::require_pointer(kOp, "packed_qkv", args.packed_qkv, size_of(args.io));
  runtime::require_pointer(kOp, "raw_gate", args.raw_gate, size_of(args.gate_dtype));
  runtime::require_pointer(kOp, "raw_beta", args.raw_beta, size_of(args.beta_dtype));
  runtime::require_pointer(kOp, "A_log", args.A_log, sizeof(float));
  runtime::require_pointer(kOp, "dt_bias", args.dt_bias, sizeof(float));
  runtime::require_pointer(kOp, "pool", args.pool, size_of(args.state));
  runtime::require_pointer(kOp, "state_indices", args.state_indices, sizeof(std::int32_t));
  runtime::require_pointer(kOp, "o", args.o, size_of(args.io));

  const auto on = static_cast<cudaStream_t>(stream);
  if (args.io == DType::f32) return with_math<float>(args, on);
  if (args.io == DType::bf16) return with_math<__nv_bfloat16>(args, on);
  with_math<__half>(args, on);
}

}  // namespace deltagauge::kernels::gdn_decode
