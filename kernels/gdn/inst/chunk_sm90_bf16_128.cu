// gdn.chunk_sm90 for bf16 q, k, v and o, K = V = 128.
#include "kernels/gdn/chunk_sm90_launch.cuh"

namespace deltagauge::kernels::gdn {

template void launch_chunk_sm90_as<__nv_bfloat16, 128>(const chunk_sm80::Params& params, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
