// Ranks as processes: MPI_Allgather on host memory.
#include "kernels/cp/transport_mpi.h"

#include <mpi.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "core/error.h"

namespace deltagauge::kernels::cp {
namespace {

void require(const char* call, int status) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING];
  int length = 0;
  MPI_Error_string(status, text, &length);
  fail(call, ": ", std::string(text, static_cast<std::size_t>(length)));
}

class Mpi : public Transport {
 public:
  Mpi() {
    int threads = 0;  // what a rank calls may have threads; MPI is called by the one that made this
    require("MPI_Init_thread", MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &threads));
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    int rank = 0, world = 0;
    require("MPI_Comm_rank", MPI_Comm_rank(MPI_COMM_WORLD, &rank));
    require("MPI_Comm_size", MPI_Comm_size(MPI_COMM_WORLD, &world));
    rank_ = static_cast<std::size_t>(rank);
    world_ = static_cast<std::size_t>(world);
  }
  ~Mpi() override { MPI_Finalize(); }
  Mpi(const Mpi&) = delete;
  Mpi& operator=(const Mpi&) = delete;

  std::size_t rank() const override { return rank_; }
  std::size_t world() const override { return world_; }
  Memory memory() const override { return Memory::host; }
  // In blocks, for counts are ints; each block lands where its rank's part of it belongs.
  void all_gather(const void* own, void* all, std::size_t bytes, void*) override {
    constexpr std::size_t kBlock = std::size_t{1} << 30;
    for (std::size_t at = 0; at < bytes; at += kBlock) {
      const int count = static_cast<int>(std::min(kBlock, bytes - at));
      MPI_Datatype row = MPI_DATATYPE_NULL;  // count bytes, the next rank's `bytes` on
      MPI_Datatype block = MPI_DATATYPE_NULL;
      require("MPI_Type_contiguous", MPI_Type_contiguous(count, MPI_BYTE, &block));
      require("MPI_Type_create_resized", MPI_Type_create_resized(block, 0, static_cast<MPI_Aint>(bytes), &row));
      require("MPI_Type_commit", MPI_Type_commit(&row));
      const int status = MPI_Allgather(static_cast<const std::byte*>(own) + at, count, MPI_BYTE,
                                       static_cast<std::byte*>(all) + at, 1, row, MPI_COMM_WORLD);
      MPI_Type_free(&row);
      MPI_Type_free(&block);
      require("MPI_Allgather", status);
    }
  }

 private:
  std::size_t rank_ = 0, world_ = 0;
};

}  // namespace

std::unique_ptr<Transport> mpi_transport() { return std::make_unique<Mpi>(); }

void abort_mpi(int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::abort();
}

}  // namespace deltagauge::kernels::cp
