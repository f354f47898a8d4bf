// A captured and instantiated CUDA graph.
#pragma once
#include <functional>

#include "kernels/runtime/stream.h"

namespace deltagauge::kernels::runtime {

class Graph {
 public:
  // Captures what work enqueues on stream. Capture is thread-local strict: an allocation or a synchronisation inside work
  // makes this throw Error.
  Graph(const Stream& stream, const std::function<void()>& work);
  ~Graph();
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void launch(const Stream& stream);

 private:
  void* executable_ = nullptr;
};

}  // namespace deltagauge::kernels::runtime
