// From the project's ops to the same ones compiled for the CPU. Of this file and the kernels' own the namespace `kernels`
// has another name (CMakeLists.txt), so that they and those for a GPU can stand in one program.
#include "kernels/host/ops.h"

#include "kernels/gdn/segment.h"

namespace deltagauge::host {

std::size_t gdn_workspace_of(std::string_view variant, const void* args) {
  return kernels::gdn::workspace_bytes(variant, *static_cast<const kernels::gdn::Args*>(args));
}
void set_segment(std::int64_t tokens) { kernels::gdn::segment_shift = std::countr_zero(static_cast<std::uint64_t>(tokens)); }
void gdn_fwd_of(std::string_view variant, const void* args) {
  kernels::gdn::fwd(variant, *static_cast<const kernels::gdn::Args*>(args), nullptr);
}
void gdn_decode_fwd_of(const void* args) {
  kernels::gdn_decode::fwd(*static_cast<const kernels::gdn_decode::Args*>(args), nullptr);
}
void l2norm_fwd_of(const void* args) { kernels::l2norm::fwd(*static_cast<const kernels::l2norm::Args*>(args), nullptr); }
void gate_fwd_of(const void* args) { kernels::gate::fwd(*static_cast<const kernels::gate::Args*>(args), nullptr); }

}  // namespace deltagauge::host
