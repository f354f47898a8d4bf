// Ranks as threads of one process that share a GPU and a stream.
#pragma once
#include <cstddef>
#include <functional>

#include "kernels/cp/transport.h"

namespace deltagauge::kernels::cp {

// As run_local, on memory of the caller's device, which is every rank's: all_gather enqueues copies on the stream, the same
// for every rank, and waits for none of them. So what all ranks enqueue there can be captured.
void run_local_gpu(std::size_t world, const std::function<void(Transport&)>& work);

}  // namespace deltagauge::kernels::cp
