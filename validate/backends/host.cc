// Host backends: the same kernels as cuda.*, run on the CPU by kernels/host as host.gdn.<variant>, host.gdn_decode,
// host.l2norm, host.gate, as --host says (docs/host.md). Where the runs of a plan take the modes in turn, checks that
// compare runs compare modes. A build without them lists them all the same, and unsupported() says why.
#include <algorithm>
#include <cstring>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <utility>

#include "core/error.h"
#include "reference/mma.h"
#include "validate/backends/kernel.h"
#include "validate/ladder/promises.h"
#include "validate/run.h"
#if DELTAGAUGE_HAVE_HOST
#include "kernels/host/device.h"
#include "kernels/host/ops.h"
#endif

namespace deltagauge::validate {
namespace {

using namespace kernels;

// Elements of the state times tokens: a few seconds of one core.
constexpr std::int64_t kMostWork = std::int64_t{1} << 26;

#if DELTAGAUGE_HAVE_HOST

constexpr Calls kCalls{"host.",
                       host::workspace_bytes,
                       [](std::string_view variant, const gdn::Args& args, void*) { host::fwd(variant, args); },
                       [](const gdn_decode::Args& args, void*) { host::fwd(args); },
                       [](const l2norm::Args& args, void*) { host::fwd(args); },
                       [](const gate::Args& args, void*) { host::fwd(args); }};

void as_tensor_core(host::Format format, int m, int n, int k, const float* a, const float* b, float* c) {
  const auto& model = format == host::Format::bf16  ? reference::kHopperBf16
                      : format == host::Format::f16 ? reference::kHopperF16
                                                    : reference::kHopperTf32;
  reference::mma_matmul(model, m, n, k, a, b, c);
}

// How the runs of a plan go; in turns where no mode is named.
struct How {
  host::Options options;
  bool turns = true;
  host::Options of(std::uint64_t run) const {
    constexpr host::Mode kTurns[] = {host::Mode::late, host::Mode::shuffled, host::Mode::early};
    host::Options these = options;
    if (turns) these.mode = kTurns[run % std::size(kTurns)];
    these.seed += run;
    return these;
  }
};
How parse_how(std::string text) {
  std::set<std::string> keys;
  std::istringstream words(text);
  for (std::string word; std::getline(words, word, ',');)
    if (const std::string key = word.substr(0, word.find('=')); !word.empty() && !keys.insert(key).second)
      fail("--host: expected ", key, " once, got it twice in '", text, "'");
  constexpr std::string_view kTurns = "mode=turns";
  const std::size_t at = text.find(kTurns);
  if (at != std::string::npos) text.erase(at, kTurns.size());
  return {host::parse_options(text), text.find("mode=") == std::string::npos};
}

class HostPlan : public Plan {
 public:
  HostPlan(const Kernel& kernel, const How& how, const Problem& problem, const Tensors& inputs, const PlanOptions& options)
      : kernel_(kernel), how_(how), problem_(problem), memory_(kernel, problem, inputs, options) {}

  void run() override {
    memory_.arena.reset();
    auto& image = memory_.arena.image();
    const std::unique_ptr<std::byte, Free> device(static_cast<std::byte*>(::operator new(image.size(), kAlign)));
    std::memcpy(device.get(), image.data(), image.size());
    host::execute(how_.of(runs_++), [&] { kernel_.launch(problem_, memory_.pointers(device.get()), nullptr); });
    std::memcpy(image.data(), device.get(), image.size());
  }

  Tensors outputs() const override { return memory_.outputs(); }
  std::vector<std::string> audit() const override { return memory_.arena.audit(); }
  std::vector<bool> untouched(std::string_view output) const override { return memory_.arena.untouched(output); }

 private:
  static constexpr std::align_val_t kAlign{Arena::kAlign};
  struct Free {
    void operator()(std::byte* at) const { ::operator delete(at, kAlign); }
  };
  const Kernel kernel_;
  const How how_;
  const Problem problem_;
  KernelMemory memory_;
  std::uint64_t runs_ = 0;
};

std::optional<std::string> not_built() { return std::nullopt; }
std::unique_ptr<Plan> make_plan(const Kernel& kernel, const How& how, const Problem& problem, const Tensors& inputs,
                                const PlanOptions& options) {
  host::set_matmul(as_tensor_core);
  return std::make_unique<HostPlan>(kernel, how, problem, inputs, options);
}

#else

constexpr Calls kCalls{"host.", [](std::string_view, const gdn::Args&) { return std::size_t{0}; }, {}, {}, {}, {}};
struct How {};
How parse_how(const std::string&) { return {}; }
std::optional<std::string> not_built() { return "build: expected one by g++ without sanitizers, got another"; }
std::unique_ptr<Plan> make_plan(const Kernel& kernel, const How&, const Problem&, const Tensors&, const PlanOptions&) {
  fail(kernel.name, ": ", *not_built());
}

#endif

class HostBackend : public Backend, public Promises {
 public:
  HostBackend(Kernel kernel, const How& how) : kernel_(std::move(kernel)), how_(how) {}
  void add_schedule(Kernel kernel) { schedules_.push_back(std::make_unique<HostBackend>(std::move(kernel), how_)); }
  std::string_view name() const override { return kernel_.name; }
  std::string_view summary() const override { return kernel_.summary; }
  std::string_view staging(const Problem&) const override { return kernel_.staging; }

  std::optional<std::string> unsupported(const Problem& problem) const override {
    if (auto reason = validate::unsupported(kernel_, problem)) return reason;
    const std::int64_t work =
        problem.rows() * std::max(problem.HV, problem.HK) * problem.K * std::max<std::int64_t>(problem.V, 1);
    if (work > kMostWork)
      return "size: expected at most " + std::to_string(kMostWork) + " elements of states times tokens, got " +
             std::to_string(work);
    return not_built();
  }

  std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const override {
    if (const auto reason = unsupported(problem)) fail(kernel_.name, ": ", *reason);
    return make_plan(kernel_, how_, problem, inputs, options);
  }

  std::string chosen(const Problem& problem) const override { return kernel_.chosen(problem, 90); }
  std::optional<std::string> not_promised(std::string_view rung, const Problem& problem) const override {
    return validate::not_promised(kernel_, rung, problem);
  }
  std::vector<const Backend*> schedules() const override { return pointers(schedules_); }

 private:
  Kernel kernel_;
  How how_;
  Backends schedules_;
};

}  // namespace

void add_host_backends(Registry& registry, std::string_view text) {
  const How how = parse_how(std::string(text));
  for (const gdn::Variant& variant : gdn::variants()) {
    auto backend = std::make_unique<HostBackend>(gdn_kernel(kCalls, variant, gdn::Schedule::automatic), how);
    if (variant.persistent)
      for (const auto schedule : {gdn::Schedule::static_grid, gdn::Schedule::persistent})
        backend->add_schedule(gdn_kernel(kCalls, variant, schedule));
    registry.add(std::move(backend));
  }
  for (Kernel& kernel : other_kernels(kCalls)) registry.add(std::make_unique<HostBackend>(std::move(kernel), how));
}

}  // namespace deltagauge::validate
