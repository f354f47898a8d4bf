// gdn forward: checks the arguments, finds the variant, launches it.
#include "kernels/gdn/gdn.h"

#include <cmath>
#include <string>

#include "kernels/gdn/launch.cuh"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/error.h"

namespace deltagauge::kernels::gdn {
namespace {

constexpr std::string_view kOp = "gdn.fwd";
constexpr std::size_t kWorkspaceAlign = 256;

struct Launcher {
  std::string_view name;
  void (*launch)(const Args&, cudaStream_t);
  std::size_t (*workspace)(const Args&);
};
constexpr Launcher kLaunchers[] = {
    {"recurrent", launch_recurrent, [](const Args&) { return std::size_t{0}; }},
    {"chunk_sm80", launch_chunk_sm80, chunk_sm80_workspace},
    {"chunk_sm90", launch_chunk_sm90, chunk_sm90_workspace},
    {"chunk_sm90_fused", launch_chunk_sm90_fused, [](const Args&) { return std::size_t{0}; }},
    {"chunk_sm90_segments", launch_chunk_sm90_segments, chunk_sm90_segments_workspace},
    {"chunk_sm80_split", launch_chunk_sm80_split, chunk_sm80_workspace},
};

const Launcher& find_launcher(const Variant& variant) {
  for (const Launcher& launcher : kLaunchers)
    if (launcher.name == variant.name) return launcher;
  fail(kOp, ": variant ", variant.name, " has no launcher");
}

void check_sizes(const Args& a) {
  runtime::require_size(kOp, "T", a.T, 0);
  runtime::require_size(kOp, "N", a.N, 0);
  runtime::require_size(kOp, "HK", a.HK, 1);
  runtime::require_size(kOp, "HV", a.HV, 1);
  if (a.HV % a.HK != 0) fail(kOp, ": HV: expected a multiple of HK = ", a.HK, ", got ", a.HV);
  runtime::require_even_split(kOp, a.cu_seqlens, a.T, a.N);
  if (a.state_indices != nullptr) {
    if (a.slots < 2) fail(kOp, ": slots: expected at least 2, since slot 0 is reserved, got ", a.slots);
    if (a.slot_stride < a.HV * a.V * a.K)
      fail(kOp, ": slot_stride: expected at least HV V K = ", a.HV * a.V * a.K, ", got ", a.slot_stride);
  } else if (a.slots != 0 || a.slot_stride != 0 || a.has_initial_state != nullptr) {
    fail(kOp, ": state_indices: expected a device pointer beside slots, slot_stride or has_initial_state, got null");
  }
  if (!std::isfinite(a.scale) || a.scale == 0) fail(kOp, ": scale: expected a finite number other than 0, got ", a.scale);
}

void check_transform(const Args& a) {
  if (a.transform == Transform::none && (a.A_log != nullptr || a.dt_bias != nullptr))
    fail(kOp, ": transform: expected softplus or bounded beside A_log or dt_bias, got none");
  if (a.transform == Transform::bounded && !(std::isfinite(a.lower_bound) && a.lower_bound <= 0))
    fail(kOp, ": lower_bound: expected a finite number <= 0, got ", a.lower_bound);
}

void check_pointers(const Args& a, const Variant& v) {
  const std::size_t io = v.alignment ? v.alignment : size_of(a.io), state = v.alignment ? v.alignment : size_of(a.state);
  if (a.T > 0) {
    runtime::require_pointer(kOp, "q", a.q, io);
    runtime::require_pointer(kOp, "k", a.k, io);
    runtime::require_pointer(kOp, "v", a.v, io);
    runtime::require_pointer(kOp, "o", a.o, io);
    runtime::require_pointer(kOp, "g", a.g, size_of(a.gate_dtype));
    runtime::require_pointer(kOp, "beta", a.beta, size_of(a.beta_dtype));
    if (a.transform != Transform::none) runtime::require_pointer(kOp, "dt_bias", a.dt_bias, sizeof(float));
  }
  runtime::require_aligned(kOp, "A_log", a.A_log, sizeof(float));
  runtime::require_aligned(kOp, "dt_bias", a.dt_bias, sizeof(float));
  runtime::require_aligned(kOp, "initial_state", a.initial_state, state);
  runtime::require_aligned(kOp, "final_state", a.final_state, state);
  runtime::require_aligned(kOp, "state_indices", a.state_indices, sizeof(std::int32_t));
  if (a.state_indices != nullptr && (a.initial_state == nullptr || a.final_state != a.initial_state))
    fail(kOp, ": final_state: expected the pool, initial_state itself, got ",
         a.final_state == nullptr || a.initial_state == nullptr ? "null" : "another address");
  runtime::require_aligned(kOp, "cu_seqlens", a.cu_seqlens, sizeof(std::int32_t));
  const struct {
    std::string_view name;
    const float* pointer;
  } taps[] = {{"tap_Ainv", a.tap_Ainv}, {"tap_S", a.tap_S}, {"tap_v_new", a.tap_v_new}};
  for (const auto& tap : taps) {
    if (tap.pointer && !v.taps)
      fail(kOp, ": ", tap.name, ": expected null, since ", v.name, " forms no chunks, got a pointer");
    runtime::require_aligned(kOp, tap.name, tap.pointer, v.alignment ? v.alignment : sizeof(float));
  }
}

int current_sm() {
  int device = 0, major = 0, minor = 0;
  runtime::check(cudaGetDevice(&device), "cudaGetDevice");
  runtime::check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), "cudaDeviceGetAttribute");
  runtime::check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), "cudaDeviceGetAttribute");
  return 10 * major + minor;
}

const Variant& supported_variant(std::string_view name, const Args& args) {
  const Variant& variant = find_variant(name == "auto" ? pick(args, current_sm()) : name);
  if (const auto reason = unsupported(variant.name, args)) fail(kOp, ": variant ", variant.name, ": ", *reason);
  return variant;
}

}  // namespace

std::size_t workspace_bytes(std::string_view variant, const Args& args) {
  return find_launcher(supported_variant(variant, args)).workspace(args);
}

void fwd(std::string_view variant, const Args& args, void* stream) {
  check_sizes(args);
  check_transform(args);
  const Variant& v = supported_variant(variant, args);
  check_pointers(args, v);
  const Launcher& launcher = find_launcher(v);
  if (launcher.workspace(args) > 0) runtime::require_pointer(kOp, "workspace", args.workspace, kWorkspaceAlign);
  if (args.N == 0) return;
  if (v.sm != 0)
    if (const auto reason = unsupported_device(v.name, current_sm())) fail(kOp, ": variant ", v.name, ": ", *reason);
  launcher.launch(args, static_cast<cudaStream_t>(stream));
}

}  // namespace deltagauge::kernels::gdn
