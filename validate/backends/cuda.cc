// CUDA backends: cuda.gdn.<variant> for every entry of the variant table, which promises the bits of its static and its
// persistent schedule where it has both and of its degrees of context parallelism where it works in chunks, cuda.gdn_decode,
// cuda.l2norm, cuda.gate. They are listed and asked for reasons in any build; plans need the CUDA half
// (DELTAGAUGE_HAVE_CUDA) and a GPU.
#include <algorithm>
#include <functional>
#include <string>
#include <utility>

#include "core/error.h"
#include "core/op.h"
#include "kernels/gate/gate.h"
#include "kernels/gdn/gdn.h"
#include "kernels/gdn_decode/gdn_decode.h"
#include "kernels/l2norm/l2norm.h"
#include "validate/backends/arena_plan.h"
#include "validate/backends/gdn_transform.h"
#include "validate/cp/degree_backend.h"
#include "validate/ladder/promises.h"
#include "validate/run.h"
#if DELTAGAUGE_HAVE_CUDA
#include "kernels/runtime/buffer.h"
#include "kernels/runtime/device_info.h"
#include "kernels/runtime/stream.h"
#endif

namespace deltagauge::validate {
namespace {

using namespace kernels;

// The device address of a tensor of the plan, or null when the plan has none of that name.
using Pointers = std::function<void*(std::string_view name)>;

constexpr std::int64_t kTapChunk = 64;  // rows of a chunk in the kernels' taps

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
                                                        {"sum_g", g * static_cast<double>(std::min(longest, kTapChunk))},
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

std::vector<TensorSpec> gdn_taps(const Problem& p) {
  std::int64_t chunks = 0;
  for (const std::int64_t length : p.lengths) chunks += (length + kTapChunk - 1) / kTapChunk;
  return {{"Ainv", DType::f32, {chunks, p.HV, kTapChunk, kTapChunk}},
          {"S", DType::f32, {chunks, p.HV, p.V, p.K}},
          {"v_new", DType::f32, {p.rows(), p.HV, p.V}, 0}};
}

// One kernel as a backend sees it.
struct Kernel {
  std::string_view op;
  std::string name, summary, staging;
  std::function<std::optional<std::string>(const Problem&)> unsupported;
  std::function<std::optional<std::string>(int sm)> unsupported_device = [](int) { return std::nullopt; };
  std::function<std::string(const Problem&, int sm)> chosen = [](const Problem&, int) { return std::string(); };
  std::function<std::vector<TensorSpec>(const Problem&)> taps;
  std::function<std::size_t(const Problem&)> workspace;  // bytes
  std::function<void(const Problem&, const Pointers&, void* stream)> launch;
};

#if DELTAGAUGE_HAVE_CUDA

std::size_t gdn_workspace(std::string_view variant, const gdn::Args& args) { return gdn::workspace_bytes(variant, args); }

void launch_gdn(std::string_view variant, gdn::Args a, const Pointers& at, void* stream) {
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
  gdn::fwd(variant, a, stream);
}

void launch_gdn_decode(const Problem& p, const Pointers& at, void* stream) {
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
  gdn_decode::fwd(a, stream);
}

void launch_l2norm(const Problem& p, const Pointers& at, void* stream) {
  l2norm::Args a = l2norm_args(p);
  a.x = at("x");
  a.y = at("y");
  a.cu_seqlens = static_cast<const std::int32_t*>(at("cu_seqlens"));
  l2norm::fwd(a, stream);
}

void launch_gate(const Problem& p, const Pointers& at, void* stream) {
  gate::Args a = gate_args(p);
  a.x = at("raw_gate");
  a.A_log = static_cast<const float*>(at("A_log"));
  a.dt_bias = static_cast<const float*>(at("dt_bias"));
  a.g = static_cast<float*>(at("g"));
  a.cu_seqlens = static_cast<const std::int32_t*>(at("cu_seqlens"));
  gate::fwd(a, stream);
}

int device_sm() {  // 0 without a device
  const auto& query = runtime::device_query();
  return query.device ? query.device->sm : 0;
}

// Why there is no device for the kernel.
std::optional<std::string> no_device(const Kernel& kernel) {
  const auto& query = runtime::device_query();
  if (query.device) return kernel.unsupported_device(query.device->sm);
  return "no GPU: " + query.reason;
}

// The arena's image lives on the device: up in one copy, run, down in one copy.
class CudaPlan : public DevicePlan {
 public:
  CudaPlan(const Kernel& kernel, const Problem& problem, const Tensors& inputs, const PlanOptions& options)
      : kernel_(kernel), problem_(problem), arena_(options.fill) {
    const OpInfo& op = op_info(problem.op);
    add_tensors(arena_, problem, inputs);
    for (const auto& specs : {op.inputs(problem), op.outputs(problem)})
      for (const TensorSpec& spec : specs) names_.push_back(spec.name);
    if (options.taps)
      for (const TensorSpec& tap : kernel.taps(problem)) {
        arena_.add_output(tap.name, tap.dtype, tap.shape);
        names_.push_back(tap.name);
        tap_names_.push_back(tap.name);
      }
    if (const std::size_t bytes = kernel.workspace(problem)) {
      arena_.add_workspace("workspace", bytes);
      names_.push_back("workspace");
    }
    arena_.reset();
    device_.emplace(arena_.image().size());
    device_->upload(arena_.image().data(), arena_.image().size(), stream_);
    stream_.sync();
    fresh_ = true;
  }

  void run() override {
    if (!fresh_) {
      arena_.reset();
      device_->upload(arena_.image().data(), arena_.image().size(), stream_);
    }
    enqueue(stream_.get());
    collect();
  }

  void load(const Tensors& inputs) override {
    replace_inputs(arena_, problem_, inputs);
    arena_.reset();
    device_->upload(arena_.image().data(), arena_.image().size(), stream_);
    stream_.sync();
    fresh_ = true;
  }

  void collect() override { device_->download(arena_.image().data(), arena_.image().size(), stream_); }

  void enqueue(void* stream) override {
    fresh_ = false;
    kernel_.launch(
        problem_, [this](std::string_view name) { return address(name); }, stream);
  }

  Tensors outputs() const override {
    Tensors outputs = outputs_in(arena_, problem_);
    for (const std::string& name : tap_names_) outputs[name] = arena_.take(name);
    return outputs;
  }
  std::vector<std::string> audit() const override { return arena_.audit(); }
  std::vector<bool> untouched(std::string_view output) const override { return arena_.untouched(output); }

 private:
  void* address(std::string_view name) const {
    for (const std::string& known : names_)
      if (known == name) return device_->at(arena_.offset(memory_of(problem_, name)));
    return nullptr;
  }

  const Kernel kernel_;
  const Problem problem_;
  Arena arena_;
  std::vector<std::string> names_, tap_names_;
  runtime::Stream stream_;
  std::optional<runtime::Buffer> device_;
  bool fresh_ = false;  // the device has what reset() laid out, and nothing has run on it
};

std::unique_ptr<Plan> make_plan(const Kernel& kernel, const Problem& problem, const Tensors& inputs,
                                const PlanOptions& options) {
  return std::make_unique<CudaPlan>(kernel, problem, inputs, options);
}

#else

std::size_t gdn_workspace(std::string_view, const gdn::Args&) { return 0; }
void launch_gdn(std::string_view, gdn::Args, const Pointers&, void*) {}
void launch_gdn_decode(const Problem&, const Pointers&, void*) {}
void launch_l2norm(const Problem&, const Pointers&, void*) {}
void launch_gate(const Problem&, const Pointers&, void*) {}
int device_sm() { return 0; }
std::optional<std::string> no_device(const Kernel&) { return "no GPU: built without CUDA"; }
std::unique_ptr<Plan> make_plan(const Kernel& kernel, const Problem&, const Tensors&, const PlanOptions&) {
  fail(kernel.name, ": expected a build with CUDA, got one without");
}

#endif

class CudaBackend : public Backend, public Promises {
 public:
  explicit CudaBackend(Kernel kernel) : kernel_(std::move(kernel)) {}
  void add_schedule(Kernel kernel) { schedules_.push_back(std::make_unique<CudaBackend>(std::move(kernel))); }
  void set_cp_degrees(Backends degrees) { cp_degrees_ = std::move(degrees); }
  std::string_view name() const override { return kernel_.name; }
  std::string_view summary() const override { return kernel_.summary; }
  std::string_view staging(const Problem&) const override { return kernel_.staging; }

  // What the kernel itself cannot do comes first: it holds on any machine.
  std::optional<std::string> unsupported(const Problem& problem) const override {
    if (problem.op != kernel_.op) return "op: expected " + std::string(kernel_.op) + ", got " + problem.op;
    if (problem.direction != Direction::fwd) return "direction: expected fwd, got bwd";
    if (auto reason = kernel_.unsupported(problem)) return reason;
    return no_device(kernel_);
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override {
    if (const auto reason = unsupported(problem)) fail(kernel_.name, ": ", *reason);
    return make_plan(kernel_, problem, inputs, options);
  }

  std::string chosen(const Problem& problem) const override { return kernel_.chosen(problem, device_sm()); }
  std::vector<const Backend*> schedules() const override { return pointers(schedules_); }
  std::vector<const Backend*> cp_degrees() const override { return pointers(cp_degrees_); }

 private:
  Kernel kernel_;
  Backends schedules_, cp_degrees_;
};

std::vector<TensorSpec> no_taps(const Problem&) { return {}; }
std::size_t no_workspace(const Problem&) { return 0; }

Kernel gdn_kernel(const gdn::Variant& variant, gdn::Schedule schedule) {
  const auto args = [schedule](const Problem& p) { return gdn_args(p, schedule); };
  const std::string suffix = schedule == gdn::Schedule::automatic ? "" : "." + std::string(gdn::name(schedule));
  return {.op = "gdn",
          .name = "cuda.gdn." + std::string(variant.name) + suffix,
          .summary = std::string(variant.summary),
          .staging = std::string(variant.staging),
          .unsupported =
              [&variant, args](const Problem& p) {
                const auto reason = gdn::unsupported(variant.name, args(p));
                return reason ? reason : beyond_limits(variant, p);
              },
          .unsupported_device = [&variant](int sm) { return gdn::unsupported_device(variant.name, sm); },
          .chosen = [args](const Problem& p, int sm) { return "cuda.gdn." + std::string(gdn::pick(args(p), sm)); },
          .taps = variant.taps ? gdn_taps : no_taps,
          .workspace = [&variant, args](const Problem& p) { return gdn_workspace(variant.name, args(p)); },
          .launch = [&variant, args](const Problem& p, const Pointers& at,
                                     void* stream) { launch_gdn(variant.name, args(p), at, stream); }};
}

}  // namespace

std::unique_ptr<Backend> cuda_gdn(std::string_view variant) {
  return std::make_unique<CudaBackend>(gdn_kernel(gdn::find_variant(variant), gdn::Schedule::automatic));
}

void add_cuda_backends(Registry& registry) {
  const auto add = [&](Kernel kernel) { registry.add(std::make_unique<CudaBackend>(std::move(kernel))); };
  for (const gdn::Variant& variant : gdn::variants()) {
    auto backend = std::make_unique<CudaBackend>(gdn_kernel(variant, gdn::Schedule::automatic));
    if (variant.persistent)
      for (const auto schedule : {gdn::Schedule::static_grid, gdn::Schedule::persistent})
        backend->add_schedule(gdn_kernel(variant, schedule));
    backend->set_cp_degrees(cp::degrees_of(backend->name(), cp::cuda_op(variant.name)));
    registry.add(std::move(backend));
  }
  add({.op = "gdn_decode",
       .name = "cuda.gdn_decode",
       .summary = "one token a sequence on a state pool in FP32, one launch",
       .staging = "gdn_decode.f32",
       .unsupported = [](const Problem& p) { return gdn_decode::unsupported(gdn_decode_args(p)); },
       .taps = no_taps,
       .workspace = no_workspace,
       .launch = launch_gdn_decode});
  add({.op = "l2norm",
       .name = "cuda.l2norm",
       .summary = "row normalisation in FP32",
       .staging = "l2norm.f32",
       .unsupported = [](const Problem& p) { return l2norm::unsupported(l2norm_args(p)); },
       .taps = no_taps,
       .workspace = no_workspace,
       .launch = launch_l2norm});
  add({.op = "gate",
       .name = "cuda.gate",
       .summary = "gate transform in FP32",
       .staging = "gate.f32",
       .unsupported = [](const Problem& p) { return gate::unsupported(gate_args(p)); },
       .taps = no_taps,
       .workspace = no_workspace,
       .launch = launch_gate});
}

}  // namespace deltagauge::validate
