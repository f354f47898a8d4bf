// gdn.chunk_sm80: workspace, and from the dtype and head size of a call to the instantiation that takes them.
#include "kernels/gdn/chunk_sm80.cuh"

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace deltagauge::kernels::gdn {
namespace {

void launch(const Args& args, bool split, cudaStream_t stream) {
  const chunk_sm80::Params params = chunk_sm80::params_of(args, sizeof(chunk_sm80::Record), split);
  const bool wide = args.K == 128;
  if (args.io == DType::bf16)
    return wide ? launch_chunk_sm80_as<__nv_bfloat16, 128>(params, stream)
                : launch_chunk_sm80_as<__nv_bfloat16, 64>(params, stream);
  wide ? launch_chunk_sm80_as<__half, 128>(params, stream) : launch_chunk_sm80_as<__half, 64>(params, stream);
}

}  // namespace

std::size_t chunk_sm80_workspace(const Args& args) { return chunk_sm80::Workspace(args, sizeof(chunk_sm80::Record)).bytes; }
void launch_chunk_sm80(const Args& args, cudaStream_t stream) { launch(args, false, stream); }
void launch_chunk_sm80_split(const Args& args, cudaStream_t stream) { launch(args, true, stream); }

}  // namespace deltagauge::kernels::gdn
