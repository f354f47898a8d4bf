// gdn.chunk_sm90_fused for f16 q, k, v and o, K = V = 128.
#include "kernels/gdn/chunk_sm90_fused_launch.cuh"

namespace deltagauge::kernels::gdn {

template void launch_chunk_sm90_fused_as<__half, 128>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
