// A CUDA stream that ends with its owner. Non-blocking: it does not wait for the default stream.
#pragma once

namespace deltagauge::kernels::runtime {

class Stream {
 public:
  Stream();
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void* get() const { return stream_; }  // a cudaStream_t
  void sync() const;                     // waits for all work; throws Error on a failure of any of it

 private:
  void* stream_ = nullptr;
};

}  // namespace deltagauge::kernels::runtime
