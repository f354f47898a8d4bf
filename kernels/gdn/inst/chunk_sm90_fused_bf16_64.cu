// gdn.chunk_sm90_fused for bf16 q, k, v and o, K = V = 64.
#include "kernels/gdn/chunk_sm90_fused_launch.cuh"

namespace deltagauge::kernels::gdn {

template void launch_chunk_sm90_fused_as<__nv_bfloat16, 64>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
