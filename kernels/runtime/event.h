// A CUDA event that keeps time and ends with its owner.
#pragma once

namespace deltagauge::kernels::runtime {

class Event {
 public:
  Event();
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void record(void* stream);  // a cudaStream_t
  void sync() const;          // waits until the work before record() is done
  // Milliseconds from start to this event; both were recorded and this one is done. About 0.5 us resolution.
  float milliseconds_since(const Event& start) const;

 private:
  void* event_ = nullptr;
};

}  // namespace deltagauge::kernels::runtime
