// Ranks as processes of an MPI run. Library deltagauge::cp_mpi, built where CMake finds MPI.
#pragma once
#include <memory>

#include "kernels/cp/transport.h"

namespace deltagauge::kernels::cp {

// Over all processes of the run. Starts MPI, and ends it when the transport goes; once a process. Throws Error on a failure
// that MPI reports.
std::unique_ptr<Transport> mpi_transport();

}  // namespace deltagauge::kernels::cp
