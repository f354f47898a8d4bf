// gdn.recurrent for bf16 q, k, v and o, fast math.
#include "kernels/gdn/recurrent.cuh"

namespace deltagauge::kernels::gdn {

template void launch_recurrent_as<__nv_bfloat16, Fast>(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn
