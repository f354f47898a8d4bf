#include "kernels/runtime/stream.h"

#include <cuda_runtime_api.h>

#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {

Stream::Stream() {
  cudaStream_t stream = nullptr;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
  stream_ = stream;
}

Stream::~Stream() { check_or_log(cudaStreamDestroy(static_cast<cudaStream_t>(stream_)), "cudaStreamDestroy"); }

void Stream::sync() const { check(cudaStreamSynchronize(static_cast<cudaStream_t>(stream_)), "cudaStreamSynchronize"); }

}  // namespace deltagauge::kernels::runtime
