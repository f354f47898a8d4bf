// gdn_decode for f16 q, k, v and o.
#include "kernels/gdn_decode/decode.cuh"

namespace deltagauge::kernels::gdn_decode {

template void launch_as<__half, Precise>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn_decode
