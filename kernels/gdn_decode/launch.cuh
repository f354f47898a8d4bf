// Between gdn_decode.cu, which has checked every argument, and the instantiations in inst/.
#pragma once
#include <cuda_runtime_api.h>

#include "kernels/gdn_decode/gdn_decode.h"

namespace deltagauge::kernels::gdn_decode {

// For one io type and math policy.
template <class Io, class Math>
void launch_as(const Args& args, cudaStream_t stream);

}  // namespace deltagauge::kernels::gdn_decode
