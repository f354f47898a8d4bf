// Ranks with a GPU each: ncclAllGather.
#include "kernels/cp/transport_nccl.h"

#include <nccl.h>

#include <vector>

#include "core/error.h"

namespace deltagauge::kernels::cp {
namespace {

void require(const char* call, ncclResult_t status) {
  if (status != ncclSuccess) fail(call, ": ", ncclGetErrorString(status));
}

class Nccl : public Transport {
 public:
  explicit Nccl(Transport& host) : rank_(host.rank()), world_(host.world()) {
    if (host.memory() != Memory::host) fail("nccl transport: expected a host transport to start from, got one on a device");
    ncclUniqueId id{};
    if (rank_ == 0) require("ncclGetUniqueId", ncclGetUniqueId(&id));
    std::vector<ncclUniqueId> ids(world_);
    host.all_gather(&id, ids.data(), sizeof id, nullptr);
    require("ncclCommInitRank", ncclCommInitRank(&group_, static_cast<int>(world_), ids[0], static_cast<int>(rank_)));
  }
  ~Nccl() override { ncclCommDestroy(group_); }
  Nccl(const Nccl&) = delete;
  Nccl& operator=(const Nccl&) = delete;

  std::size_t rank() const override { return rank_; }
  std::size_t world() const override { return world_; }
  Memory memory() const override { return Memory::device; }
  void all_gather(const void* own, void* all, std::size_t bytes, void* stream) override {
    require("ncclAllGather", ncclAllGather(own, all, bytes, ncclUint8, group_, static_cast<cudaStream_t>(stream)));
  }

 private:
  std::size_t rank_, world_;
  ncclComm_t group_ = nullptr;
};

}  // namespace

std::unique_ptr<Transport> nccl_transport(Transport& host) { return std::make_unique<Nccl>(host); }

}  // namespace deltagauge::kernels::cp
