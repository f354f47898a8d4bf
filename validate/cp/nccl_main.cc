// deltagauge-cp-nccl: a context-parallel run with a rank on every GPU of this host, a thread each, through NCCL. Rank 0
// holds what came out against the same run with all ranks on its GPU, bit for bit, and says so; the exit status is 0 when
// every bit is the same, 77 where there are fewer than two GPUs. A rank that cannot go on ends the program with 2.
//   deltagauge-cp-nccl CASE [TABLE] [SEGMENT] [OP]
#include <cstdlib>
#include <exception>
#include <iostream>
#include <vector>

#include "kernels/cp/transport_local.h"
#include "kernels/cp/transport_nccl.h"
#include "kernels/runtime/device_info.h"
#include "validate/cp/rank_run.h"

namespace {

constexpr int kTooFew = 77;

int run(const std::vector<std::string>& args) {
  using namespace deltagauge;
  const int gpus = kernels::runtime::device_count();
  if (gpus < 2) {
    std::cerr << "deltagauge-cp-nccl: expected at least two GPUs, got " << gpus << "\n";
    return kTooFew;
  }
  int status = 0;
  kernels::cp::run_local(static_cast<std::size_t>(gpus), [&](kernels::cp::Transport& host) {
    try {
      kernels::runtime::use_device(static_cast<int>(host.rank()));
      const auto group = kernels::cp::nccl_transport(host);
      const int own = validate::cp::run_as_rank(args, "cuda.cp.chunk_sm80", host, *group);
      if (host.rank() == 0) status = own;
    } catch (const std::exception& error) {  // the others may be waiting inside NCCL, where nothing wakes them
      std::cerr << "deltagauge-cp-nccl: rank " << host.rank() << ": " << error.what() << std::endl;
      std::_Exit(2);
    }
  });
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run({argv + 1, argv + argc});
  } catch (const std::exception& error) {
    std::cerr << "deltagauge-cp-nccl: " << error.what() << "\n";
    return 2;
  }
}
