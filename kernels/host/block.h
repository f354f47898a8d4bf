// A block under way: its threads, warps and what they wait for. What shadow headers call is in device.h.
#pragma once
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/host/executor.h"
#include "kernels/host/fiber.h"
#include "kernels/host/races.h"

namespace deltagauge::host {

struct Block;

// What a thread waits for.
struct Condition {
  virtual bool ready() = 0;
  virtual std::string describe() const = 0;

 protected:
  ~Condition() = default;
};

// A copy of the bulk engine, done when the mode says so. A store first reads shared memory, then writes; a load writes.
struct Copy {
  Block* block = nullptr;
  std::size_t kernel = 0;
  bool load = false;
  std::function<void()> read, write;
  bool done = false;
  std::uint32_t tick = 0;  // of its engine (races.h)
  void do_read() {
    if (read) read(), read = nullptr;
  }
  void finish() {
    do_read();
    if (!done) write(), done = true;
  }
};

struct Thread {
  Context context;
  unsigned index = 0;
  Condition* waits = nullptr;
  bool polled = false, done = false;
  std::vector<std::vector<std::function<void()>>> groups{1};  // of cp.async, the last one open
  std::uint32_t committed = 0;                                // groups of cp.async
  std::deque<std::shared_ptr<Copy>> stores;                   // bulk, in order
};

// Lanes of a warp that do one thing together.
struct Meeting {
  unsigned mask = 0, here = 0;
  const char* what = "";
  void* of[32] = {};
  std::uint64_t turn = 0;
};

struct Warp {
  std::list<Meeting> meetings;
  std::deque<std::vector<std::function<void()>>> products{1};  // groups of wgmma, the last one open
  std::deque<std::uint32_t> ticks{0};                          // of the last product of each group
  bool fenced = false;                                         // wgmma.fence since the last wait
};

struct NamedBarrier {
  int expected = 0, arrived = 0;
  std::uint64_t turn = 0;
  Join join;
  std::vector<unsigned> waiting;  // threads
};

struct Mbarrier64 {
  std::int64_t count = 0, pending = 0, bytes = 0;
  std::uint64_t phase = 0;
  Join join;
  Races::Both ended;  // as of the last phase that has ended
  void settle(const Races* races) {
    if (pending != 0 || bytes != 0) return;
    ++phase, pending = count;
    if (races != nullptr) ended = races->freeze(join);
  }
};

struct Block {
  unsigned index = 0, blocks = 0, threads_per_block = 0, live = 0;
  std::size_t kernel = 0;  // its place in the stream
  const std::function<void()>* body = nullptr;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  NamedBarrier barriers[16];
  std::unordered_map<const void*, Mbarrier64> mbarriers;
  bool released = false;  // it has let the dependent kernel start
  std::exception_ptr failure;
  std::unique_ptr<Races> races;  // where they are looked for
  Context scheduler;

  void begin(char* stacks);
  bool turn();  // goes on until no thread can; whether any did
  std::string describe() const;

 private:
  bool run_warp(unsigned w);
  void resume(Thread& thread);
};

inline constexpr std::size_t kStackBytes = 64 * 1024;  // of a thread; pages that are not touched cost nothing

// Who is running.
struct Now {
  Block* block = nullptr;
  Thread* thread = nullptr;
  Warp& warp() const { return block->warps[thread->index / 32]; }
  unsigned lane() const { return thread->index % 32; }
};
extern Now now;

std::uint64_t draw();             // of the seed
bool chance(unsigned one_in);     // in the mode shuffled, else false
void wait(Condition& condition);  // lets others go on until ready
void add_copy(std::shared_ptr<Copy> copy);
bool ended(std::size_t kernel);  // it and its copies; numbers before the first: true
char* shared_window();           // of the host thread

}  // namespace deltagauge::host
