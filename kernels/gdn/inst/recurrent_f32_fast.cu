// gdn.recurrent for f32 q, k, v and o, fast math.
#include "kernels/gdn/recurrent.cuh"

namespace deltagauge::kernels::gdn {

template void launch_recurrent_as<float, Fast>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
