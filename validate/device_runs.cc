#include "validate/device_runs.h"

#include "core/error.h"
#if DELTAGAUGE_HAVE_CUDA
#include "kernels/runtime/buffer.h"
#include "kernels/runtime/event.h"
#include "kernels/runtime/graph.h"
#include "kernels/runtime/stream.h"
#endif

namespace deltagauge::validate {

#if DELTAGAUGE_HAVE_CUDA

using kernels::runtime::Buffer, kernels::runtime::Event, kernels::runtime::Graph, kernels::runtime::Stream;

std::vector<Tensors> run_in_graph(DevicePlan& plan, const Tensors& inputs) {
  const Stream stream;
  Graph graph(stream, [&] { plan.enqueue(stream.get()); });
  std::vector<Tensors> outputs;
  for (int launch = 0; launch < 2; ++launch) {
    plan.load(inputs);
    graph.launch(stream);
    stream.sync();
    plan.collect();
    outputs.push_back(plan.outputs());
  }
  return outputs;
}

std::optional<Tensors> run_under_load(DevicePlan& plan, const Tensors& inputs, DevicePlan& other) {
  constexpr int kFewestCalls = 32, kMostCalls = 8192, kCallsAFill = 8;
  constexpr std::size_t kFillBytes = std::size_t{1} << 26;
  const Stream ours, theirs;
  Event ours_end, theirs_end;
  Buffer traffic(kFillBytes);
  for (int calls = kFewestCalls; calls <= kMostCalls; calls *= 4) {
    plan.load(inputs);
    for (int i = 0; i < calls; ++i) {
      if (i % kCallsAFill == 0) traffic.fill(static_cast<std::uint8_t>(i), theirs);
      other.enqueue(theirs.get());
      if (i != kFewestCalls / 2) continue;
      plan.enqueue(ours.get());
      ours_end.record(ours.get());
    }
    theirs_end.record(theirs.get());
    ours.sync();
    theirs.sync();
    plan.collect();
    if (theirs_end.milliseconds_since(ours_end) > 0) return plan.outputs();
  }
  return {};
}

#else

std::vector<Tensors> run_in_graph(DevicePlan&, const Tensors&) {
  fail("graph: expected a build with CUDA, got one without");
}

std::optional<Tensors> run_under_load(DevicePlan&, const Tensors&, DevicePlan&) {
  fail("load on another stream: expected a build with CUDA, got one without");
}

#endif

}  // namespace deltagauge::validate
