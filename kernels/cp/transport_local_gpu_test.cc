// Ranks as threads on one GPU and one stream, eagerly and as a graph.
#include "kernels/cp/transport_local_gpu.h"

#include <cstdint>
#include <vector>

#include "kernels/runtime/graph.h"
#include "kernels/runtime/testing.h"

namespace deltagauge::kernels::cp {
namespace {

using namespace runtime;

class LocalGpuTransport : public GpuTest {};

TEST_F(LocalGpuTransport, gathers_in_rank_order_eagerly_and_captured) {
  constexpr std::size_t kWorld = 3, kBytes = 5;
  const Stream stream;
  std::vector<Buffer> own, all;
  for (std::size_t r = 0; r < kWorld; ++r) {
    own.emplace_back(kBytes);
    all.emplace_back(kWorld * kBytes);
  }
  const auto enqueue = [&] {
    run_local_gpu(kWorld, [&](Transport& t) { t.all_gather(own[t.rank()].as(), all[t.rank()].as(), kBytes, stream.get()); });
  };
  Graph graph(stream, enqueue);
  for (int round = 0; round < 4; ++round) {
    for (std::size_t r = 0; r < kWorld; ++r) {
      own[r].fill(static_cast<std::uint8_t>(10 * round + static_cast<int>(r)), stream);
      all[r].fill(0xff, stream);
    }
    round % 2 ? graph.launch(stream) : enqueue();
    for (std::size_t r = 0; r < kWorld; ++r) {
      std::vector<std::uint8_t> got(kWorld * kBytes);
      all[r].download(got.data(), got.size(), stream);
      for (std::size_t i = 0; i < got.size(); ++i)
        EXPECT_EQ(got[i], 10 * round + static_cast<int>(i / kBytes)) << "round " << round << " rank " << r << " byte " << i;
    }
  }
}

TEST_F(LocalGpuTransport, refuses_ranks_on_streams_of_their_own) {
  const Buffer own(8), all(16);
  EXPECT_EQ(error_of([&] {
              run_local_gpu(2, [&](Transport& t) {
                const Stream stream;
                t.all_gather(own.as(), all.as(), 8, stream.get());
              });
            }).substr(0, 65),
            "cp local transport: all_gather: expected one stream for all ranks");
}

}  // namespace
}  // namespace deltagauge::kernels::cp
