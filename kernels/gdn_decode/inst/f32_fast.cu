// gdn_decode for f32 q, k, v and o, fast math.
#include "kernels/gdn_decode/decode.cuh"

namespace deltagauge::kernels::gdn_decode {

template void launch_as<float, Fast>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn_decode
