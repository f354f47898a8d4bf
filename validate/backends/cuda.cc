// CUDA backends: cuda.gdn.<variant> for every entry of the variant table, which promises the bits of its static and its
// persistent schedule where it has both and of its degrees of context parallelism where it works in chunks, cuda.gdn_decode,
// cuda.l2norm, cuda.gate. They are listed and asked for reasons in any build; plans need the CUDA half
// (DELTAGAUGE_HAVE_CUDA) and a GPU.
#include <string>
#include <utility>

#include "core/error.h"
#include "validate/backends/arena_plan.h"
#include "validate/backends/kernel.h"
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

#if DELTAGAUGE_HAVE_CUDA

constexpr Calls kCalls{"cuda.", gdn::workspace_bytes, gdn::fwd, gdn_decode::fwd, l2norm::fwd, gate::fwd};

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
      : kernel_(kernel), problem_(problem), memory_(kernel, problem, inputs, options), device_(image().size()) {
    upload();
  }

  void run() override {
    if (!fresh_) {
      memory_.arena.reset();
      device_.upload(image().data(), image().size(), stream_);
    }
    enqueue(stream_.get());
    collect();
  }

  void load(const Tensors& inputs) override {
    replace_inputs(memory_.arena, problem_, inputs);
    memory_.arena.reset();
    upload();
  }

  void collect() override { device_.download(image().data(), image().size(), stream_); }

  void enqueue(void* stream) override {
    fresh_ = false;
    kernel_.launch(problem_, memory_.pointers(device_.at(0)), stream);
  }

  Tensors outputs() const override { return memory_.outputs(); }
  std::vector<std::string> audit() const override { return memory_.arena.audit(); }
  std::vector<bool> untouched(std::string_view output) const override { return memory_.arena.untouched(output); }

 private:
  std::span<std::byte> image() { return memory_.arena.image(); }
  void upload() {
    device_.upload(image().data(), image().size(), stream_);
    stream_.sync();
    fresh_ = true;
  }

  const Kernel kernel_;
  const Problem problem_;
  KernelMemory memory_;
  runtime::Stream stream_;
  runtime::Buffer device_;
  bool fresh_ = false;  // the device has what reset() laid out, and nothing has run on it
};

std::unique_ptr<Plan> make_plan(const Kernel& kernel, const Problem& problem, const Tensors& inputs,
                                const PlanOptions& options) {
  return std::make_unique<CudaPlan>(kernel, problem, inputs, options);
}

#else

constexpr Calls kCalls{"cuda.", [](std::string_view, const gdn::Args&) { return std::size_t{0}; }, {}, {}, {}, {}};

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
    if (auto reason = validate::unsupported(kernel_, problem)) return reason;
    return no_device(kernel_);
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override {
    if (const auto reason = unsupported(problem)) fail(kernel_.name, ": ", *reason);
    return make_plan(kernel_, problem, inputs, options);
  }

  std::string chosen(const Problem& problem) const override { return kernel_.chosen(problem, device_sm()); }
  std::optional<std::string> not_promised(std::string_view rung, const Problem& problem) const override {
    return validate::not_promised(kernel_, rung, problem);
  }
  std::vector<const Backend*> schedules() const override { return pointers(schedules_); }
  std::vector<const Backend*> cp_degrees() const override { return pointers(cp_degrees_); }

 private:
  Kernel kernel_;
  Backends schedules_, cp_degrees_;
};

}  // namespace

std::unique_ptr<Backend> cuda_gdn(std::string_view variant) {
  return std::make_unique<CudaBackend>(gdn_kernel(kCalls, gdn::find_variant(variant), gdn::Schedule::automatic));
}

void add_cuda_backends(Registry& registry) {
  for (const gdn::Variant& variant : gdn::variants()) {
    auto backend = std::make_unique<CudaBackend>(gdn_kernel(kCalls, variant, gdn::Schedule::automatic));
    if (variant.persistent)
      for (const auto schedule : {gdn::Schedule::static_grid, gdn::Schedule::persistent})
        backend->add_schedule(gdn_kernel(kCalls, variant, schedule));
    backend->set_cp_degrees(cp::degrees_of(backend->name(), cp::cuda_op(variant.name)));
    registry.add(std::move(backend));
  }
  for (Kernel& kernel : other_kernels(kCalls)) registry.add(std::make_unique<CudaBackend>(std::move(kernel)));
}

}  // namespace deltagauge::validate
