// Device memory that ends with its owner. Copies are ordered on a stream; uploads and downloads of ordinary host memory
// return when the host side is done with it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "kernels/runtime/stream.h"

namespace deltagauge::kernels::runtime {

class Buffer {
 public:
  explicit Buffer(std::size_t bytes);  // throws Error with the size when there is not enough memory; 0 is fine
  ~Buffer();
  Buffer(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::size_t bytes() const { return bytes_; }
  template <class T = void>
  T* as() const {
    return static_cast<T*>(data_);
  }
  std::byte* at(std::size_t offset) const { return static_cast<std::byte*>(data_) + offset; }

  void upload(const void* host, std::size_t bytes, const Stream& stream, std::size_t offset = 0);
  void download(void* host, std::size_t bytes, const Stream& stream, std::size_t offset = 0) const;  // then synchronises
  void fill(std::uint8_t byte, const Stream& stream);

 private:
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace deltagauge::kernels::runtime
