// Ranks with a GPU each, through NCCL on device memory. Library deltagauge::cp_nccl, built with CUDA where nccl.h is found.
#pragma once
#include <memory>

#include "kernels/cp/transport.h"

namespace deltagauge::kernels::cp {

// Of the ranks of `host` (threads of one process, MPI), which carries the group's id once. The calling thread's current
// device is the rank's. Throws Error on a failure that NCCL reports.
std::unique_ptr<Transport> nccl_transport(Transport& host);

}  // namespace deltagauge::kernels::cp
