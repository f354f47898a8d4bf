// The project's kernels as backends see them, whoever runs them: what each takes, what it needs in memory, how it is called.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/op.h"
#include "kernels/gate/gate.h"
#include "kernels/gdn/gdn.h"
#include "kernels/gdn_decode/gdn_decode.h"
#include "kernels/l2norm/l2norm.h"

namespace deltagauge::validate {

// The address of a tensor of the plan, or null when the plan has none of that name.
using Pointers = std::function<void*(std::string_view name)>;

// Who runs them: the ops' own functions, or others of the same arguments.
struct Calls {
  std::string_view prefix;  // of backends' names
  std::size_t (*gdn_workspace)(std::string_view variant, const kernels::gdn::Args& args);
  void (*gdn)(std::string_view variant, const kernels::gdn::Args& args, void* stream);
  void (*gdn_decode)(const kernels::gdn_decode::Args& args, void* stream);
  void (*l2norm)(const kernels::l2norm::Args& args, void* stream);
  void (*gate)(const kernels::gate::Args& args, void* stream);
};

struct Kernel {
  std::string_view op;
  std::string name, summary, staging;
  std::function<std::optional<std::string>(const Problem&)> unsupported;
  std::function<std::optional<std::string>(int sm)> unsupported_device = [](int) { return std::nullopt; };
  std::function<std::string(const Problem&, int sm)> chosen = [](const Problem&, int) { return std::string(); };
  std::function<std::vector<TensorSpec>(const Problem&)> taps = [](const Problem&) { return std::vector<TensorSpec>(); };
  std::function<std::size_t(const Problem&)> workspace = [](const Problem&) { return std::size_t{0}; };  // bytes
  std::function<void(const Problem&, const Pointers&, void* stream)> launch;
  std::int64_t segment = 0;  // as gdn::Variant
};
Kernel gdn_kernel(const Calls& calls, const kernels::gdn::Variant& variant, kernels::gdn::Schedule schedule);
std::vector<Kernel> other_kernels(const Calls& calls);  // of the ops that have one kernel

// Why the problem is not one of the kernel's op and direction, or what the kernel says of it.
std::optional<std::string> unsupported(const Kernel& kernel, const Problem& problem);
// Why the bits may change on a rung of the ladder, or nothing.
std::optional<std::string> not_promised(const Kernel& kernel, std::string_view rung, const Problem& problem);

// The tensors of a call between guard bands, as an image to be laid over memory of its size.
struct KernelMemory {
  KernelMemory(const Kernel& kernel, const Problem& problem, const Tensors& inputs, const PlanOptions& options);
  Pointers pointers(std::byte* base) const;
  Tensors outputs() const;  // of the image as it stands, with taps
  Arena arena;

 private:
  const Problem problem_;
  std::vector<std::string> names_, tap_names_;
};

}  // namespace deltagauge::validate
