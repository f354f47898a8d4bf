// Ranks as threads.
#include "kernels/cp/transport_local.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>
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

std::atomic<int> copies, gone;

// Fails for the first that asks, and holds the others up.
void copy_slowly(void* to, const void* from, std::size_t bytes, void*) {
  if (!copies++) fail("the first copy fails");
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  if (gone) fail("expected every buffer to be there, got ", gone.load(), " gone");
  std::memcpy(to, from, bytes);
}

struct Buffers {
  std::vector<char> own, all;
  ~Buffers() { ++gone; }
};

TEST(LocalTransport, no_buffer_of_a_rank_that_fails_goes_while_others_read_it) {
  copies = gone = 0;
  try {
    run_local(4,
              [](Transport& t) {
                Buffers b{std::vector<char>(8), std::vector<char>(32)};
                t.all_gather(b.own.data(), b.all.data(), b.own.size(), nullptr);
              },
              {Memory::host, copy_slowly});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the first copy fails");
  }
  EXPECT_EQ(copies, 13) << "one of the first rank, four of each other";
}

TEST(LocalTransport, copies_nothing_where_the_last_rank_has_another_size) {
  copies = 1, gone = 0;
  try {
    run_local(4,
              [](Transport& t) {
                Buffers b{std::vector<char>(8 + t.rank() / 3), std::vector<char>(36)};
                t.all_gather(b.own.data(), b.all.data(), b.own.size(), nullptr);
              },
              {Memory::host, copy_slowly});
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(),
                 "cp local transport: all_gather: expected 8 bytes of every rank as of rank 0, got 9 of rank 3");
  }
  EXPECT_EQ(copies, 1);
}

TEST(LocalTransport, a_rank_that_goes_on_behind_another_that_failed_meets_nobody) {
  std::atomic<int> met = 0;
  EXPECT_THROW(run_local(3,
                         [&](Transport& t) {
                           int own = 0, all[3];
                           t.all_gather(&own, all, sizeof own, nullptr);
                           if (t.rank() == 0) fail("rank 0 stops");
                           for (int i = 0; i < 6; ++i) try {
                               t.all_gather(&own, all, sizeof own, nullptr);
                               ++met;
                             } catch (const Error&) {
                             }
                         }),
               Error);
  EXPECT_EQ(met, 0);
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
