// gdn.recurrent for f16 q, k, v and o, precise math.
#include "kernels/gdn/recurrent.cuh"

namespace deltagauge::kernels::gdn {

template void launch_recurrent_as<__half, Precise>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
