// Ranks as processes of an MPI run. Library deltagauge::cp_mpi, built where CMake finds MPI.
#pragma once
#include <memory>

#include "kernels/cp/transport.h"

namespace deltagauge::kernels::cp {

// Over all processes of the run. Starts MPI, and ends it when the transport goes, which waits for every other process. Once
// a process. Throws Error on a failure that MPI reports.
std::unique_ptr<Transport> mpi_transport();

// Ends every process of the run with this status: for a rank that cannot go on, while the transport is there. The others
// would wait for it in a collective for ever.
[[noreturn]] void abort_mpi(int status);

}  // namespace deltagauge::kernels::cp
