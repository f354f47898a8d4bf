// The gate transform with fast math.
#include "kernels/gate/gate.cuh"

namespace deltagauge::kernels::gate {

void launch_fast(const Args& args, cudaStream_t stream) { launch_as<Fast>(args, stream); }

}  // namespace deltagauge::kernels::gate
