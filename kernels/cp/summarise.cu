// Two calls of the op: one from zero, one with v = 0 that advances the identity in place.
#include "kernels/cp/summarise.h"

#include <algorithm>

#include "kernels/runtime/arguments.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::cp {
namespace {

constexpr std::string_view kOp = "cp.summarise";
constexpr std::size_t kAlign = 256;  // of the workspace and its parts
constexpr int kThreads = 256;

// From which state, into which.
gdn::Args call_of(const gdn::Args& span, float* from, float* to) {
  gdn::Args call = span;
  call.state = DType::f32;
  call.initial_state = from;
  call.final_state = to;
  call.tap_Ainv = call.tap_S = call.tap_v_new = nullptr;
  return call;
}
gdn::Args bias_call(const gdn::Args& span, const Maps& maps) { return call_of(span, nullptr, maps.bias); }
gdn::Args transition_call(const gdn::Args& span, const Maps& maps) {
  gdn::Args call = call_of(span, maps.transition, maps.transition);
  call.V = call.K;
  return call;
}

// One variant for both calls.
std::string_view chosen(std::string_view variant, const gdn::Args& span) {
  return variant == "auto" ? gdn::pick(bias_call(span, {})) : variant;
}

// [zeros | o, which nobody reads | the op's own], each part at a multiple of kAlign.
struct Workspace {
  std::size_t zeros, o, op, bytes;
  Workspace(std::string_view variant, const gdn::Args& span) {
    const auto rows = [&](std::int64_t width) {
      const auto bytes = static_cast<std::size_t>(span.T * span.HV * width) * size_of(span.io);
      return (bytes + kAlign - 1) / kAlign * kAlign;
    };
    zeros = static_cast<std::size_t>(span.T * span.HV * span.K) * size_of(span.io);
    o = rows(span.K);
    op = o + rows(std::max(span.K, span.V));
    bytes = op + std::max(gdn::workspace_bytes(variant, bias_call(span, {})),
                          gdn::workspace_bytes(variant, transition_call(span, {})));
  }
};

// I, [K, K], again and again.
__global__ void __launch_bounds__(kThreads) identity(float* to, std::int64_t count, int K) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * kThreads + threadIdx.x;
  if (i >= count) return;
  const int at = static_cast<int>(i % (K * K));
  to[i] = at / K == at % K ? 1.0f : 0.0f;
}

}  // namespace

std::size_t summarise_workspace(std::string_view variant, const gdn::Args& span) {
  return Workspace(chosen(variant, span), span).bytes;
}

void summarise(std::string_view variant, const gdn::Args& span, const Maps& maps, void* workspace, void* stream) {
  runtime::require_size(kOp, "T", span.T, 0);
  runtime::require_size(kOp, "N", span.N, 0);
  runtime::require_size(kOp, "HV", span.HV, 1);
  const std::string_view used = chosen(variant, span);
  const Workspace layout(used, span);
  if (span.N == 0) return;
  runtime::require_pointer(kOp, "bias", maps.bias, 16);
  runtime::require_pointer(kOp, "transition", maps.transition, 16);
  if (layout.bytes) runtime::require_pointer(kOp, "workspace", workspace, kAlign);
  char* base = static_cast<char*>(workspace);
  const auto on = static_cast<cudaStream_t>(stream);

  gdn::Args bias = bias_call(span, maps), transition = transition_call(span, maps);
  transition.v = base;
  bias.o = transition.o = base + layout.o;
  bias.workspace = transition.workspace = base + layout.op;
  gdn::fwd(used, bias, stream);
  if (layout.zeros) runtime::check(cudaMemsetAsync(base, 0, layout.zeros, on), "cudaMemsetAsync");
  const std::int64_t count = span.N * span.HV * span.K * span.K;
  runtime::launch("cp.summarise identity", identity, (count + kThreads - 1) / kThreads, kThreads, 0, on, maps.transition,
                  count, static_cast<int>(span.K));
  gdn::fwd(used, transition, stream);
}

}  // namespace deltagauge::kernels::cp
