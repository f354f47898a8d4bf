// Ranks as threads.
#include "kernels/cp/transport_local.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/error.h"

namespace deltagauge::kernels::cp {
namespace {

TEST(LocalTransport, gathers_in_rank_order_again_and_again) {
  std::vector<std::vector<int>> got(5);
  run_local(5, [&](Transport& t) {
    std::vector<int> all(t.world());
    for (int round = 0; round < 50; ++round) {
      const int own = static_cast<int>(t.rank()) * 100 + round;
      t.all_gather(&own, all.data(), sizeof own, nullptr);
      for (std::size_t r = 0; r < t.world(); ++r)
        if (all[r] != static_cast<int>(r) * 100 + round) fail("rank ", t.rank(), " round ", round, ": got ", all[r]);
    }
    got[t.rank()] = all;
  });
  for (const auto& all : got) EXPECT_EQ(all, (std::vector<int>{49, 149, 249, 349, 449}));
}

TEST(LocalTransport, a_rank_that_throws_frees_those_that_wait_and_its_error_comes_back) {
  const auto run = [] {
    run_local(3, [](Transport& t) {
      if (t.rank() == 1) fail("rank 1 stops");
      int own = 0, all[3];
      t.all_gather(&own, all, sizeof own, nullptr);
    });
  };
  try {
    run();
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "rank 1 stops");
  }
}

TEST(LocalTransport, refuses_buffers_of_different_sizes) {
  EXPECT_THROW(run_local(2,
                         [](Transport& t) {
                           std::vector<char> own(1 + t.rank()), all(8);
                           t.all_gather(own.data(), all.data(), own.size(), nullptr);
                         }),
               Error);
}

TEST(LocalTransport, refuses_streams_that_differ) {
  EXPECT_THROW(run_local(2,
                         [](Transport& t) {
                           char own = 0, all[2];
                           t.all_gather(&own, all, 1, t.rank() ? &own : nullptr);
                         }),
               Error);
}

TEST(LocalTransport, an_own_part_in_its_place_stays_there) {
  run_local(3, [](Transport& t) {
    std::vector<int> all(t.world(), -1);
    all[t.rank()] = static_cast<int>(t.rank());
    t.all_gather(&all[t.rank()], all.data(), sizeof(int), nullptr);
    if (all != std::vector<int>{0, 1, 2}) fail("rank ", t.rank(), ": got ", all[0], " ", all[1], " ", all[2]);
  });
}

}  // namespace
}  // namespace deltagauge::kernels::cp
