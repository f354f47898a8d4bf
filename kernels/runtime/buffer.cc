#include "kernels/runtime/buffer.h"

#include <cuda_runtime_api.h>

#include <string>
#include <utility>

#include "core/error.h"
#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {
namespace {

void check_range(const char* what, std::size_t offset, std::size_t bytes, std::size_t size) {
  if (offset > size || bytes > size - offset)
    fail("device buffer ", what, ": expected a range inside ", size, " bytes, got ", bytes, " bytes at ", offset);
}

}  // namespace

Buffer::Buffer(std::size_t bytes) : bytes_(bytes) {
  if (bytes) check(cudaMalloc(&data_, bytes), ("cudaMalloc of " + std::to_string(bytes) + " bytes").c_str());
}

Buffer::~Buffer() {
  if (data_) check_or_log(cudaFree(data_), "cudaFree");
}

Buffer::Buffer(Buffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

void Buffer::upload(const void* host, std::size_t bytes, const Stream& stream, std::size_t offset) {
  check_range("upload", offset, bytes, bytes_);
  check(cudaMemcpyAsync(at(offset), host, bytes, cudaMemcpyHostToDevice, static_cast<cudaStream_t>(stream.get())),
        "cudaMemcpyAsync to the device");
}

void Buffer::download(void* host, std::size_t bytes, const Stream& stream, std::size_t offset) const {
  check_range("download", offset, bytes, bytes_);
  check(cudaMemcpyAsync(host, at(offset), bytes, cudaMemcpyDeviceToHost, static_cast<cudaStream_t>(stream.get())),
        "cudaMemcpyAsync to the host");
  stream.sync();
}

void Buffer::fill(std::uint8_t byte, const Stream& stream) {
  check(cudaMemsetAsync(data_, byte, bytes_, static_cast<cudaStream_t>(stream.get())), "cudaMemsetAsync");
}

}  // namespace deltagauge::kernels::runtime
