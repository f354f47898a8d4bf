// gdn.chunk_sm90, chunk_sm90_fused and chunk_sm90_segments: workspace, and from the dtype and head size of a call to the
// instantiation that takes them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/gdn/chunk_sm90_segments.cuh"
#include "kernels/gdn/segment.h"

namespace deltagauge::kernels::gdn {

std::size_t chunk_sm90_workspace(const Args& args) {
  return chunk_sm80::Workspace(args, sizeof(chunk_sm90::Record90)).bytes + chunk_sm90::there_bytes(args);
}

void launch_chunk_sm90(const Args& args, cudaStream_t stream) {
  const chunk_sm80::Params params = chunk_sm80::params_of(args, sizeof(chunk_sm90::Record90), false);
  const bool wide = args.K == 128;
  if (args.io == DType::bf16)
    return wide ? launch_chunk_sm90_as<__nv_bfloat16, 128>(params, stream)
                : launch_chunk_sm90_as<__nv_bfloat16, 64>(params, stream);
  wide ? launch_chunk_sm90_as<__half, 128>(params, stream) : launch_chunk_sm90_as<__half, 64>(params, stream);
}

void launch_chunk_sm90_fused(const Args& args, cudaStream_t stream) {
  args.io == DType::bf16 ? launch_chunk_sm90_fused_as<__nv_bfloat16, 128>(args, stream)
                         : launch_chunk_sm90_fused_as<__half, 128>(args, stream);
}

std::size_t chunk_sm90_segments_workspace(const Args& args) {
  return chunk_sm90::SegmentsWorkspace(args, segment_shift).bytes;
}

void launch_chunk_sm90_segments(const Args& args, cudaStream_t stream) {
  const chunk_sm80::Params params = chunk_sm80::params_of(args, sizeof(chunk_sm90::Record90), false);
  const bool wide = args.K == 128;
  if (args.io == DType::bf16)
    return wide ? launch_chunk_sm90_segments_as<__nv_bfloat16, 128>(params, segment_shift, stream)
                : launch_chunk_sm90_segments_as<__nv_bfloat16, 64>(params, segment_shift, stream);
  wide ? launch_chunk_sm90_segments_as<__half, 128>(params, segment_shift, stream)
       : launch_chunk_sm90_segments_as<__half, 64>(params, segment_shift, stream);
}

}  // namespace deltagauge::kernels::gdn
