// gdn.chunk_sm90: from the dtype and head size of a call to the instantiation that takes them. No workspace.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/gdn/chunk_sm80.cuh"

namespace deltagauge::kernels::gdn {

void launch_chunk_sm90(const Args& args, cudaStream_t stream) {
  const chunk_sm80::Params params{.args = args,
                                  .records = nullptr,
                                  .q_unit = nullptr,
                                  .k_unit = nullptr,
                                  .dense = args.cu_seqlens == nullptr ? args.T / args.N : 0,
                                  .split = false};
  const bool wide = args.K == 128;
  if (args.io == DType::bf16)
    return wide ? launch_chunk_sm90_as<__nv_bfloat16, 128>(params, stream)
                : launch_chunk_sm90_as<__nv_bfloat16, 64>(params, stream);
  wide ? launch_chunk_sm90_as<__half, 128>(params, stream) : launch_chunk_sm90_as<__half, 64>(params, stream);
}

}  // namespace deltagauge::kernels::gdn
