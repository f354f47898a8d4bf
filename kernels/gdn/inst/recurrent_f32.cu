// gdn.recurrent for f32 q, k, v and o, precise math.
#include "kernels/gdn/recurrent.cuh"

namespace deltagauge::kernels::gdn {

template void launch_recurrent_as<float, Precise>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
