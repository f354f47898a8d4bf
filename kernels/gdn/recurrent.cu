// gdn.recurrent: from the dtypes of a call to the instantiation that takes them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "kernels/device/math.cuh"
#include "kernels/gdn/launch.cuh"

namespace deltagauge::kernels::gdn {
namespace {

template <class Io>
void with_math(const Args& args, cudaStream_t stream) {
  if (args.fast_math) return launch_recurrent_as<Io, Fast>(args, stream);
  launch_recurrent_as<Io, Precise>(args, stream);
}

}  // namespace

void launch_recurrent(const Args& args, cudaStream_t stream) {
  if (args.io == DType::f32) return with_math<float>(args, stream);
  if (args.io == DType::bf16) return with_math<__nv_bfloat16>(args, stream);
  with_math<__half>(args, stream);
}

}  // namespace deltagauge::kernels::gdn
