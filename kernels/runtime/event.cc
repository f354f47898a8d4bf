#include "kernels/runtime/event.h"

#include <cuda_runtime_api.h>

#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {

Event::Event() {
  cudaEvent_t event = nullptr;
  check(cudaEventCreate(&event), "cudaEventCreate");
  event_ = event;
}

Event::~Event() { check_or_log(cudaEventDestroy(static_cast<cudaEvent_t>(event_)), "cudaEventDestroy"); }

void Event::record(void* stream) {
  check(cudaEventRecord(static_cast<cudaEvent_t>(event_), static_cast<cudaStream_t>(stream)), "cudaEventRecord");
}

void Event::sync() const { check(cudaEventSynchronize(static_cast<cudaEvent_t>(event_)), "cudaEventSynchronize"); }

float Event::milliseconds_since(const Event& start) const {
  float elapsed = 0;
  check(cudaEventElapsedTime(&elapsed, static_cast<cudaEvent_t>(start.event_), static_cast<cudaEvent_t>(event_)),
        "cudaEventElapsedTime");
  return elapsed;
}

}  // namespace deltagauge::kernels::runtime
