// Races in a block's shared memory, by happens-before: each access is held against those it is not ordered after. The
// kernels' own accesses are seen through the calls that -fsanitize=thread puts before them (races.cc), those of PTX wrappers
// are told. What orders: __syncthreads, named barriers, __syncwarp, mbarriers, waits for copies and products. What does not:
// shuffles, votes, mma. An asynchronous access (wgmma, bulk copies) sees ordinary writes only behind a
// fence.proxy.async of who wrote or of who was told.
//
// Time is counted by thread and, for what goes on beside it, by engine: cp.async of each thread, wgmma of each warp, loads
// of each mbarrier, bulk stores of each thread that makes some.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace deltagauge::host {

using Ticks = std::vector<std::uint32_t>;  // by thread and engine
using SharedTicks = std::shared_ptr<const Ticks>;

// Up to which tick of each a thread is ordered behind; its own part apart, so that threads share the rest.
struct Clock {
  SharedTicks base;
  std::uint32_t own = 0, copies = 0;  // the thread, its cp.async
};
struct View {
  Clock seen, fenced;  // fenced: of ordinary writes, which asynchronous accesses see too
};

// What those who come to a barrier have seen, together.
struct Join {
  Ticks seen, fenced;
  SharedTicks last_seen, last_fenced;  // what has been joined last
};

class Races;
// Of the running thread's block where its memory is watched; else bytes is 0.
struct Watch {
  Races* races = nullptr;
  const char* memory = nullptr;
  std::size_t bytes = 0;
};
extern Watch watch;

class Races {
 public:
  Races(unsigned threads, char* memory, std::size_t bytes);
  Watch watch() { return {this, memory_, bytes_}; }

  // Order. thread: who does it.
  void fence(unsigned thread) { views_[thread].fenced = views_[thread].seen; }
  void give(unsigned thread, Join& join);  // its view so far; later accesses are not meant
  struct Both {
    SharedTicks seen, fenced;
  };
  Both freeze(const Join& join) const;
  void take_all(unsigned thread, const Both& both);  // of a barrier to which it gave: it has all that the thread has
  void take(unsigned thread, const Both& both);

  // Engines.
  unsigned engine_of(const void* owner);  // a new one for a new owner
  unsigned products_of(unsigned warp) const { return 2 * threads_ + warp; }
  std::uint32_t next_tick(unsigned engine) { return ++ticks_[engine]; }
  void take(unsigned thread, unsigned engine, std::uint32_t tick);  // what the engine did up to there is done
  void give(Join& join, unsigned engine, std::uint32_t tick) const;

  // Accesses.
  void by_thread(unsigned thread, const void* p, std::size_t bytes, bool write, const void* pc);
  void by_copy(unsigned thread, std::uint32_t group, const void* p, std::size_t bytes, const void* pc);  // cp.async, write
  void by_engine(unsigned thread, unsigned engine, std::uint32_t tick, const void* p, std::size_t bytes, bool write,
                 const char* what);
  void copies_done(unsigned thread, std::uint32_t group) { views_[thread].seen.copies = group; }

  const std::vector<std::string>& found() const { return found_; }

 private:
  struct Access {
    std::uint32_t tick = 0;  // 0: none
    std::uint16_t who = 0;   // thread or engine
    bool async = false;
    std::uint16_t thread = 0;  // that did it or issued it
    const void* pc = nullptr;  // or what, where async
  };
  struct Cell {  // two bytes
    Access write;
    std::vector<Access> reads;
  };
  static constexpr std::size_t kCell = 2, kPage = 512;  // bytes; cells
  std::uint32_t get(const Clock& clock, unsigned thread, unsigned who) const;
  void access(const void* p, std::size_t bytes, bool write, const Access& own);
  bool ordered(const Access& before, bool write, const Access& own) const;
  void report(const Access& before, bool before_writes, const Access& own, bool write, std::size_t offset);
  static std::string words(const Access& access, bool write);

  const unsigned threads_;
  char* const memory_;
  const std::size_t bytes_;
  std::vector<View> views_;
  Ticks ticks_;
  std::unordered_map<const void*, unsigned> engines_;
  std::vector<std::unique_ptr<Cell[]>> pages_;
  std::vector<std::string> found_;
  std::unordered_map<std::string, int> known_;
};

}  // namespace deltagauge::host
