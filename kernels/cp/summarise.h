// Context parallelism on a device (docs/cp.md): the maps of a rank's segments, S_out = S_in A + B. A map is the op itself
// over V + K value rows, and rows of the state never meet: B is the state that a segment ends in from zero, A the one that
// it ends in from the identity with v = 0.
#pragma once
#include <cstddef>
#include <string_view>

#include "kernels/gdn/gdn.h"

namespace deltagauge::kernels::cp {

// Device memory, 16-byte aligned. By segment.
struct Maps {
  float* bias = nullptr;        // [N, HV, V, K] B
  float* transition = nullptr;  // [N, HV, K, K] A
};

// span: the op on a rank's span, its segments as sequences. Of its pointers, q k v g beta A_log dt_bias cu_seqlens are read
// and else. Bytes of workspace; depends on sizes and dtypes only. Throws Error when the variant does not take them.
std::size_t summarise_workspace(std::string_view variant, const gdn::Args& span);
// workspace: summarise_workspace() bytes, 256-byte aligned. Checks every argument (throws Error with expected and got), then
// enqueues on stream (a cudaStream_t). Never allocates, never synchronises.
void summarise(std::string_view variant, const gdn::Args& span, const Maps& maps, void* workspace, void* stream);

}  // namespace deltagauge::kernels::cp
