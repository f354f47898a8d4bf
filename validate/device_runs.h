// Other ways to run a plan on a device than Plan::run(): as a captured graph, and beside other work. They need the CUDA half
// (DELTAGAUGE_HAVE_CUDA) and a GPU.
#pragma once
#include <optional>
#include <vector>

#include "core/backend.h"

namespace deltagauge::validate {

// Captures one call and launches the graph twice, each time on these inputs afresh; the outputs of both.
std::vector<Tensors> run_in_graph(DevicePlan& plan, const Tensors& inputs);

// The outputs of one call on these inputs while another stream runs calls of `other`, a plan with memory of its own, and
// fills memory. Nothing where that work was over before the call was, however much of it there was.
std::optional<Tensors> run_under_load(DevicePlan& plan, const Tensors& inputs, DevicePlan& other);

}  // namespace deltagauge::validate
