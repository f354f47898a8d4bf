// deltagauge-cp-rank: one rank of a context-parallel run under mpirun. Rank 0 holds what came out of all processes against
// the same run with its ranks as threads, bit for bit, and says so; the exit status is 0 when every bit is the same. A rank
// that cannot go on ends all of them with 2.
//   mpirun -n 4 deltagauge-cp-rank CASE [TABLE] [SEGMENT] [OP]
#include <exception>
#include <iostream>

#include "kernels/cp/transport_mpi.h"
#include "validate/cp/rank_run.h"

int main(int argc, char** argv) {
  namespace dg = deltagauge;
  try {
    const auto transport = dg::kernels::cp::mpi_transport();
    try {
      return dg::validate::cp::run_as_rank({argv + 1, argv + argc}, "reference.cp.chunk_sm80.plain", *transport, *transport);
    } catch (const std::exception& error) {
      std::cerr << "deltagauge-cp-rank: rank " << transport->rank() << ": " << error.what() << std::endl;
      dg::kernels::cp::abort_mpi(2);
    }
  } catch (const std::exception& error) {  // MPI itself
    std::cerr << "deltagauge-cp-rank: " << error.what() << "\n";
    return 2;
  }
}
