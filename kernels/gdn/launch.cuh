// Between gdn.cu and the variants' own files. fwd() has checked every argument before it calls a launcher; a launcher
// only enqueues kernels. Which sizes and dtypes a variant takes is said once, in variants.cc (plain C++, built without
// CUDA too), so there is no supports() here.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>

#include "kernels/gdn/gdn.h"

namespace deltagauge::kernels::gdn {

void launch_recurrent(const Args& args, cudaStream_t stream);
// Its part for one io type and math policy; instantiated in inst/recurrent_*.cu.
template <class Io, class Math>
void launch_recurrent_as(const Args& args, cudaStream_t stream);

void launch_chunk_sm80(const Args& args, cudaStream_t stream);
void launch_chunk_sm80_split(const Args& args, cudaStream_t stream);     // operands as hi + lo
void launch_chunk_sm90(const Args& args, cudaStream_t stream);           // on sm_90 only
void launch_chunk_sm90_fused(const Args& args, cudaStream_t stream);     // on sm_90 only
void launch_chunk_sm90_segments(const Args& args, cudaStream_t stream);  // on sm_90 only
// Bytes; depend on sizes and dtypes only.
std::size_t chunk_sm80_workspace(const Args& args);
std::size_t chunk_sm90_workspace(const Args& args);
std::size_t chunk_sm90_segments_workspace(const Args& args);

}  // namespace deltagauge::kernels::gdn
