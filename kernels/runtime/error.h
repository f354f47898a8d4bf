// CUDA statuses as Errors.
#pragma once
#include <string>

namespace deltagauge::kernels::runtime {

// status: a cudaError_t. Anything but success throws Error: the call, the file and line of the caller, CUDA's own words.
void check(int status, const char* call, const char* file = __builtin_FILE(), int line = __builtin_LINE());
// For destructors: reports a failure on stderr instead of throwing.
void check_or_log(int status, const char* call) noexcept;
std::string describe(int status);  // "cudaErrorNoDevice: no CUDA-capable device is detected"

}  // namespace deltagauge::kernels::runtime
