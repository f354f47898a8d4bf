// Ranks as threads of one process.
#pragma once
#include <cstddef>
#include <functional>

#include "kernels/cp/transport.h"

namespace deltagauge::kernels::cp {

// Runs work once a rank, each on a thread of its own, and returns when all have. When a rank throws, the ranks that wait for
// it stop with an Error, and the first exception is thrown again here.
void run_local(std::size_t world, const std::function<void(Transport&)>& work);

}  // namespace deltagauge::kernels::cp
