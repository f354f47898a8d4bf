// The project's ops on the host executor. Arguments as of the kernels themselves, all pointers to host memory.
#pragma once
#include "kernels/gate/gate.h"
#include "kernels/gdn/gdn.h"
#include "kernels/gdn_decode/gdn_decode.h"
#include "kernels/host/executor.h"
#include "kernels/l2norm/l2norm.h"

namespace deltagauge::host {

// In ops.cc, whose Args are others of the same layout.
std::size_t gdn_workspace_of(std::string_view variant, const void* args);
void gdn_fwd_of(std::string_view variant, const void* args);
void gdn_decode_fwd_of(const void* args);
void l2norm_fwd_of(const void* args);
void gate_fwd_of(const void* args);

// Tokens of a segment of gdn.chunk_sm90_segments from here on, a power of two, at least 64; kernels::gdn::kSegment at first.
void set_segment(std::int64_t tokens);

inline std::size_t workspace_bytes(std::string_view variant, const kernels::gdn::Args& args) {
  return gdn_workspace_of(variant, &args);
}
// Enqueue; within execute().
inline void fwd(std::string_view variant, const kernels::gdn::Args& args) { gdn_fwd_of(variant, &args); }
inline void fwd(const kernels::gdn_decode::Args& args) { gdn_decode_fwd_of(&args); }
inline void fwd(const kernels::l2norm::Args& args) { l2norm_fwd_of(&args); }
inline void fwd(const kernels::gate::Args& args) { gate_fwd_of(&args); }

}  // namespace deltagauge::host
