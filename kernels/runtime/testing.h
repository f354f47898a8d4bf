// For tests only. GpuTest: a fixture that skips, and says why, where there is no GPU, and fails there when the environment
// sets DELTAGAUGE_REQUIRE_GPU=1. error_of: what a call throws.
#pragma once
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <string_view>

#include "core/error.h"
#include "core/tensor.h"
#include "kernels/runtime/buffer.h"
#include "kernels/runtime/device_info.h"
#include "kernels/runtime/stream.h"

namespace deltagauge::kernels::runtime {

class GpuTest : public testing::Test {
 protected:
  void SetUp() override {
    const DeviceQuery& query = device_query();
    if (query.device) return;
    const char* required = std::getenv("DELTAGAUGE_REQUIRE_GPU");
    if (required && std::string_view(required) == "1") FAIL() << "DELTAGAUGE_REQUIRE_GPU=1, but no GPU: " << query.reason;
    GTEST_SKIP() << "no GPU: " << query.reason;
  }
};

// A device copy of the tensor's storage.
inline Buffer to_device(const Tensor& tensor, const Stream& stream) {
  Buffer buffer(tensor.nbytes());
  if (tensor.nbytes()) buffer.upload(tensor.data(), tensor.nbytes(), stream);
  return buffer;
}
// A contiguous tensor from device memory, which starts offset elements into the buffer.
inline Tensor to_host(const Buffer& buffer, DType dtype, Shape shape, const Stream& stream, std::size_t offset = 0) {
  Tensor tensor(dtype, std::move(shape));
  if (tensor.nbytes()) buffer.download(tensor.data(), tensor.nbytes(), stream, offset * size_of(dtype));
  return tensor;
}

// The text of the Error that call throws, or "no error".
template <class Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const Error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace deltagauge::kernels::runtime
