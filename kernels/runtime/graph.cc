#include "kernels/runtime/graph.h"

#include <cuda_runtime_api.h>

#include "kernels/runtime/error.h"

namespace deltagauge::kernels::runtime {

Graph::Graph(const Stream& stream, const std::function<void()>& work) {
  const auto captured = static_cast<cudaStream_t>(stream.get());
  check(cudaStreamBeginCapture(captured, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  cudaGraph_t graph = nullptr;
  try {
    work();
  } catch (...) {
    cudaStreamEndCapture(captured, &graph);
    if (graph) cudaGraphDestroy(graph);
    cudaGetLastError();  // the capture's own failure must not show in a later call
    throw;
  }
  check(cudaStreamEndCapture(captured, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t executable = nullptr;
  const auto status = cudaGraphInstantiate(&executable, graph, 0);
  check_or_log(cudaGraphDestroy(graph), "cudaGraphDestroy");
  check(status, "cudaGraphInstantiate");
  executable_ = executable;
}

Graph::~Graph() { check_or_log(cudaGraphExecDestroy(static_cast<cudaGraphExec_t>(executable_)), "cudaGraphExecDestroy"); }

void Graph::launch(const Stream& stream) {
  check(cudaGraphLaunch(static_cast<cudaGraphExec_t>(executable_), static_cast<cudaStream_t>(stream.get())),
        "cudaGraphLaunch");
}

}  // namespace deltagauge::kernels::runtime
