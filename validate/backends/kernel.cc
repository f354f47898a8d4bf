#include "validate/backends/kernel.h"

#include <algorithm>
#include <utility>

#include "validate/backends/arena_plan.h"
#include "validate/backends/gdn_transform.h"

namespace deltagauge::validate {
namespace {

using namespace kernels;

gdn::Args gdn_args(const Problem& p, gdn::Schedule schedule) {
  return {.slots = p.slots,
          .slot_stride = p.slots ? p.HV * p.V * p.K + p.slot_pad : 0,
          .T = p.rows(),
          .N = p.sequences(),
          .HK = p.HK,
          .HV = p.HV,
          .K = p.K,
          .V = p.V,
          .io = p.io,
          .state = p.state,
          .gate_dtype = p.gate_dtype,
          .beta_dtype = p.beta_dtype,
          .scale = static_cast<float>(p.q_scale()),
          .l2norm = p.l2norm == Switch::on,
          .transform = transform_of(p),
          .lower_bound = static_cast<float>(p.lower_bound),
          .fast_math = p.math == MathMode::fast,
          .schedule = schedule};
}

// Why the scale of an input, as the axes name it, is past what a variant bears. Overrides are no part of a problem: with
// them the range command looks past the limits.
std::optional<std::string> beyond_limits(const gdn::Variant& variant, const Problem& p) {
  const double g = p.gate.kind == "constant" ? -p.gate.value : 0;
  const std::int64_t longest = p.lengths.empty() ? 0 : *std::max_element(p.lengths.begin(), p.lengths.end());
  const std::pair<std::string_view, double> scales[] = {{"g", g},
                                                        {"sum_g", g * static_cast<double>(std::min(longest, variant.chunk))},
                                                        {"beta", p.beta.kind == "const" ? p.beta.value : 0},
                                                        {"v", p.v.value},
                                                        {"h0", p.h0.value}};
  for (const auto& [quantity, scale] : scales)
    if (auto reason = gdn::beyond_limit(variant.name, p.io, quantity, scale)) return reason;
  return std::nullopt;
}

gdn_decode::Args gdn_decode_args(const Problem& p) {
  return {.B = p.sequences(),
          .HK = p.HK,
          .HV = p.HV,
          .K = p.K,
          .V = p.V,
          .slots = p.slots,
          .slot_stride = p.HV * p.V * p.K + p.slot_pad,
          .io = p.io,
          .state = p.state,
          .gate_dtype = p.gate_dtype,
          .beta_dtype = p.beta_dtype,
          .scale = static_cast<float>(p.q_scale()),
          .neg_eigval = p.neg_eigval == Switch::on,
          .fast_math = p.math == MathMode::fast};
}

l2norm::Args l2norm_args(const Problem& p) { return {.T = p.rows(), .N = p.sequences(), .H = p.HK, .K = p.K, .io = p.io}; }

gate::Args gate_args(const Problem& p) {
  return {.T = p.rows(),
          .N = p.sequences(),
          .HV = p.HV,
          .K = p.per == "channel" ? p.K : 1,
          .io = p.io,
          .transform = p.transform == "bounded" ? gate::Transform::bounded : gate::Transform::softplus,
          .lower_bound = static_cast<float>(p.lower_bound),
          .fast_math = p.math == MathMode::fast};
}

std::vector<TensorSpec> gdn_taps(const Problem& p, std::int64_t chunk) {
  std::int64_t chunks = 0;
  for (const std::int64_t length : p.lengths) chunks += (length + chunk - 1) / chunk;
  return {{"Ainv", DType::f32, {chunks, p.HV, chunk, chunk}},
          {"S", DType::f32, {chunks, p.HV, p.V, p.K}},
          {"v_new", DType::f32, {p.rows(), p.HV, p.V}, 0}};
}

gdn::Args with_pointers(gdn::Args a, const Pointers& at) {
  a.q = at("q");
  a.k = at("k");
  a.v = at("v");
  a.g = at(a.transform == gdn::Transform::none ? "g" : "raw_gate");
  a.beta = at("beta");
  a.A_log = static_cast<const float*>(at("A_log"));
  a.dt_bias = static_cast<const float*>(at("dt_bias"));
  a.initial_state = at("initial_state");
  a.cu_seqlens = static_cast<const std::int32_t*>(at("cu_seqlens"));
  a.o = at("o");
  a.final_state = at("final_state");
  a.state_indices = static_cast<const std::int32_t*>(at("state_indices"));
  a.has_initial_state = static_cast<const std::uint8_t*>(at("has_initial_state"));
  a.workspace = at("workspace");
  a.tap_Ainv = static_cast<float*>(at("Ainv"));
  a.tap_S = static_cast<float*>(at("S"));
  a.tap_v_new = static_cast<float*>(at("v_new"));
  return a;
}

gdn_decode::Args gdn_decode_args(const Problem& p, const Pointers& at) {
  gdn_decode::Args a = gdn_decode_args(p);
  a.packed_qkv = at("packed_qkv");
  a.raw_gate = at("raw_gate");
  a.raw_beta = at("raw_beta");
  a.A_log = static_cast<const float*>(at("A_log"));
  a.dt_bias = static_cast<const float*>(at("dt_bias"));
  a.pool = at("final_state");
  a.state_indices = static_cast<const std::int32_t*>(at("state_indices"));
  a.has_initial_state = static_cast<const std::uint8_t*>(at("has_initial_state"));
  a.o = at("o");
  return a;
}

l2norm::Args l2norm_args(const Problem& p, const Pointers& at) {
  l2norm::Args a = l2norm_args(p);
  a.x = at("x");
  a.y = at("y");
  a.cu_seqlens = static_cast<const std::int32_t*>(at("cu_seqlens"));
  return a;
}

gate::Args gate_args(const Problem& p, const Pointers& at) {
  gate::Args a = gate_args(p);
  a.x = at("raw_gate");
  a.A_log = static_cast<const float*>(at("A_log"));
  a.dt_bias = static_cast<const float*>(at("dt_bias"));
  a.g = static_cast<float*>(at("g"));
  a.cu_seqlens = static_cast<const std::int32_t*>(at("cu_seqlens"));
  return a;
}

}  // namespace

Kernel gdn_kernel(const Calls& calls, const gdn::Variant& variant, gdn::Schedule schedule) {
  const auto args = [schedule](const Problem& p) { return gdn_args(p, schedule); };
  const std::string suffix = schedule == gdn::Schedule::automatic ? "" : "." + std::string(gdn::name(schedule));
  const std::string of_gdn = std::string(calls.prefix) + "gdn.";
  Kernel kernel{
      .op = "gdn",
      .name = of_gdn + std::string(variant.name) + suffix,
      .summary = std::string(variant.summary),
      .staging = std::string(variant.staging),
      .unsupported =
          [&variant, args](const Problem& p) {
            const auto reason = gdn::unsupported(variant.name, args(p));
            return reason ? reason : beyond_limits(variant, p);
          },
      .unsupported_device = [&variant](int sm) { return gdn::unsupported_device(variant.name, sm); },
      .chosen = [args, of_gdn](const Problem& p, int sm) { return of_gdn + std::string(gdn::pick(args(p), sm)); },
      .workspace = [&variant, args, calls](const Problem& p) { return calls.gdn_workspace(variant.name, args(p)); },
      .launch = [&variant, args, calls](const Problem& p, const Pointers& at,
                                        void* stream) { calls.gdn(variant.name, with_pointers(args(p), at), stream); },
      .segment = variant.segment};
  if (variant.taps) kernel.taps = [&variant](const Problem& p) { return gdn_taps(p, variant.chunk); };
  return kernel;
}

std::vector<Kernel> other_kernels(const Calls& calls) {
  const std::string prefix(calls.prefix);
  return {
      {.op = "gdn_decode",
       .name = prefix + "gdn_decode",
       .summary = "one token a sequence on a state pool in FP32, one launch",
       .staging = "gdn_decode.f32",
       .unsupported = [](const Problem& p) { return gdn_decode::unsupported(gdn_decode_args(p)); },
       .launch = [calls](const Problem& p, const Pointers& at,
                         void* stream) { calls.gdn_decode(gdn_decode_args(p, at), stream); }},
      {.op = "l2norm",
       .name = prefix + "l2norm",
       .summary = "row normalisation in FP32",
       .staging = "l2norm.f32",
       .unsupported = [](const Problem& p) { return l2norm::unsupported(l2norm_args(p)); },
       .launch = [calls](const Problem& p, const Pointers& at, void* stream) { calls.l2norm(l2norm_args(p, at), stream); }},
      {.op = "gate",
       .name = prefix + "gate",
       .summary = "gate transform in FP32",
       .staging = "gate.f32",
       .unsupported = [](const Problem& p) { return gate::unsupported(gate_args(p)); },
       .launch = [calls](const Problem& p, const Pointers& at, void* stream) { calls.gate(gate_args(p, at), stream); }}};
}

std::optional<std::string> unsupported(const Kernel& kernel, const Problem& problem) {
  if (problem.op != kernel.op) return "op: expected " + std::string(kernel.op) + ", got " + problem.op;
  if (problem.direction != Direction::fwd) return "direction: expected fwd, got bwd";
  return kernel.unsupported(problem);
}

std::optional<std::string> not_promised(const Kernel& kernel, std::string_view rung, const Problem& problem) {
  const auto& lengths = problem.lengths;
  if (kernel.segment == 0 || rung != "split") return std::nullopt;
  if (std::none_of(lengths.begin(), lengths.end(), [&](std::int64_t length) { return length > kernel.segment; }))
    return std::nullopt;
  return "segments of " + std::to_string(kernel.segment) + " tokens are counted from where a call starts a sequence";
}

KernelMemory::KernelMemory(const Kernel& kernel, const Problem& problem, const Tensors& inputs, const PlanOptions& options)
    : arena(options.fill), problem_(problem) {
  const OpInfo& op = op_info(problem.op);
  add_tensors(arena, problem, inputs);
  for (const auto& specs : {op.inputs(problem), op.outputs(problem)})
    for (const TensorSpec& spec : specs) names_.push_back(spec.name);
  if (options.taps)
    for (const TensorSpec& tap : kernel.taps(problem)) {
      arena.add_output(tap.name, tap.dtype, tap.shape);
      names_.push_back(tap.name);
      tap_names_.push_back(tap.name);
    }
  if (const std::size_t bytes = kernel.workspace(problem)) {
    arena.add_workspace("workspace", bytes);
    names_.push_back("workspace");
  }
  arena.reset();
}

Pointers KernelMemory::pointers(std::byte* base) const {
  return [this, base](std::string_view name) -> void* {
    for (const std::string& known : names_)
      if (known == name) return base + arena.offset(memory_of(problem_, name));
    return nullptr;
  };
}

Tensors KernelMemory::outputs() const {
  Tensors outputs = outputs_in(arena, problem_);
  for (const std::string& name : tap_names_) outputs[name] = arena.take(name);
  return outputs;
}

}  // namespace deltagauge::validate
