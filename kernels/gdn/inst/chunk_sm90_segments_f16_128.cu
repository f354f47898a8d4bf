// gdn.chunk_sm90_segments for f16 q, k, v and o, K = V = 128.
#include "kernels/gdn/chunk_sm90_segments_launch.cuh"

namespace deltagauge::kernels::gdn {

template void launch_chunk_sm90_segments_as<__half, 128>(const chunk_sm80::Params& params, int shift, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
