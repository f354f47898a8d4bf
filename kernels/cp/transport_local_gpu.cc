// A stream is worked on in order, so a copy that is enqueued once its source's kernel was waits for nothing else.
#include "kernels/cp/transport_local_gpu.h"

#include <cuda_runtime_api.h>

#include "kernels/cp/transport_local.h"
#include "kernels/runtime/error.h"

namespace deltagauge::kernels::cp {
namespace {

void copy(void* to, const void* from, std::size_t bytes, void* stream) {
  runtime::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, static_cast<cudaStream_t>(stream)),
                 "cudaMemcpyAsync on the device");
}

}  // namespace

void run_local_gpu(std::size_t world, const std::function<void(Transport&)>& work) {
  int device = 0;
  runtime::check(cudaGetDevice(&device), "cudaGetDevice");
  const auto on_device = [&](Transport& transport) {
    runtime::check(cudaSetDevice(device), "cudaSetDevice");
    work(transport);
  };
  run_local(world, on_device, {Memory::device, copy});
}

}  // namespace deltagauge::kernels::cp
