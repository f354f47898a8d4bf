// Ranks as threads: a meeting point where all post their buffers, copy, and part.
#include "kernels/cp/transport_local.h"

#include <condition_variable>
#include <cstring>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "core/error.h"

namespace deltagauge::kernels::cp {
namespace {

class Meeting {
 public:
  explicit Meeting(std::size_t world) : posted_(world) {}

  struct Post {
    const void* data = nullptr;
    std::size_t bytes = 0;
    void* stream = nullptr;
  };
  void post(std::size_t rank, Post post) { posted_[rank] = post; }
  const std::vector<Post>& posted() const { return posted_; }

  // Returns once every rank is here; throws once one has left.
  void wait() {
    std::unique_lock lock(mutex_);
    if (error_) fail("cp local transport: another rank failed");
    const std::size_t round = round_;
    if (++here_ == posted_.size()) {
      here_ = 0;
      ++round_;
      changed_.notify_all();
    } else {
      changed_.wait(lock, [&] { return round_ != round || error_; });
    }
    if (round_ == round) fail("cp local transport: another rank failed");
  }
  void leave(std::exception_ptr error) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = error;
    changed_.notify_all();
  }
  std::exception_ptr error() const { return error_; }

 private:
  std::vector<Post> posted_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t here_ = 0, round_ = 0;
  std::exception_ptr error_;
};

class Local : public Transport {
 public:
  Local(Meeting& meeting, std::size_t rank, const LocalMemory& memory) : meeting_(meeting), rank_(rank), memory_(memory) {}
  std::size_t rank() const override { return rank_; }
  std::size_t world() const override { return meeting_.posted().size(); }
  Memory memory() const override { return memory_.kind; }
  void all_gather(const void* own, void* all, std::size_t bytes, void* stream) override {
    meeting_.post(rank_, {own, bytes, stream});
    meeting_.wait();
    expect_same();  // every rank looks at all of them, so all go on or none does
    std::exception_ptr error;
    try {
      copy_all(all);
    } catch (...) {
      error = std::current_exception();
    }
    meeting_.wait();  // nobody's buffer changes or goes before all have read it
    if (error) std::rethrow_exception(error);
  }

 private:
  void expect_same() const {
    const Meeting::Post& first = meeting_.posted()[0];
    for (std::size_t r = 1; r < world(); ++r) {
      const Meeting::Post& post = meeting_.posted()[r];
      if (post.bytes != first.bytes)
        fail("cp local transport: all_gather: expected ", first.bytes, " bytes of every rank as of rank 0, got ", post.bytes,
             " of rank ", r);
      if (post.stream != first.stream)
        fail("cp local transport: all_gather: expected one stream for all ranks, got another of rank ", r,
             " than of rank 0");
    }
  }
  void copy_all(void* all) const {
    for (std::size_t r = 0; r < world(); ++r) {
      const auto& [data, bytes, stream] = meeting_.posted()[r];
      std::byte* to = static_cast<std::byte*>(all) + r * bytes;
      if (bytes && to != data) memory_.copy(to, data, bytes, stream);
    }
  }

  Meeting& meeting_;
  std::size_t rank_;
  const LocalMemory& memory_;
};

}  // namespace

const LocalMemory kHostMemory{Memory::host,
                              [](void* to, const void* from, std::size_t bytes, void*) { std::memcpy(to, from, bytes); }};

void run_local(std::size_t world, const std::function<void(Transport&)>& work, const LocalMemory& memory) {
  if (world < 1) fail("cp local transport: expected at least one rank, got 0");
  Meeting meeting(world);
  std::vector<std::thread> threads;
  const auto run = [&](std::size_t rank) {
    try {
      Local transport(meeting, rank, memory);
      work(transport);
    } catch (...) {
      meeting.leave(std::current_exception());
    }
  };
  try {
    for (std::size_t rank = 0; rank < world; ++rank) threads.emplace_back(run, rank);
  } catch (...) {  // no more threads: those that are there wait for the others
    meeting.leave(std::current_exception());
  }
  for (std::thread& thread : threads) thread.join();
  if (meeting.error()) std::rethrow_exception(meeting.error());
}

}  // namespace deltagauge::kernels::cp
