#include "kernels/runtime/error.h"

#include <cuda_runtime_api.h>

#include <cstdio>

#include "core/error.h"

namespace deltagauge::kernels::runtime {

std::string describe(int status) {
  const auto code = static_cast<cudaError_t>(status);
  return std::string(cudaGetErrorName(code)) + ": " + cudaGetErrorString(code);
}

void check(int status, const char* call, const char* file, int line) {
  if (status != cudaSuccess) fail(call, " failed at ", file, ":", line, ": ", describe(status));
}

void check_or_log(int status, const char* call) noexcept {
  if (status == cudaSuccess) return;
  const auto code = static_cast<cudaError_t>(status);
  std::fprintf(stderr, "deltagauge: %s failed: %s: %s\n", call, cudaGetErrorName(code), cudaGetErrorString(code));
}

}  // namespace deltagauge::kernels::runtime
