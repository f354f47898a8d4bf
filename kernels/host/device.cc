// Barriers, shuffles, flags and matrices of warps.
#include "kernels/host/device.h"

#include <bit>
#include <cstring>

#include "core/error.h"
#include "kernels/host/block.h"
#include "kernels/host/meet.h"

namespace deltagauge::host {
namespace {

constexpr unsigned kAll = 0xffffffffu;

NamedBarrier& named(int barrier) {
  if (barrier < 0 || barrier > 15) fail("barrier: expected 0 .. 15, got ", barrier);
  return now.block->barriers[barrier];
}

// Whoever waits goes on, having seen what all have.
void end_turn(NamedBarrier& barrier) {
  barrier.arrived = 0, ++barrier.turn;
  if (Races* races = now.block->races.get()) {
    const Races::Both both = races->freeze(barrier.join);
    for (const unsigned thread : barrier.waiting) races->take_all(thread, both);
    barrier.join = {};
  }
  barrier.waiting.clear();
}
void give(NamedBarrier& barrier, bool waits) {
  if (Races* races = now.block->races.get()) {
    races->give(now.thread->index, barrier.join);
    if (waits) barrier.waiting.push_back(now.thread->index);
  }
}

// Counts the thread in; the last one ends the turn.
void arrive(int number, int threads, bool waits) {
  NamedBarrier& barrier = named(number);
  if (threads % 32 != 0 || threads <= 0) fail("barrier ", number, ": expected a multiple of 32 threads, got ", threads);
  if (barrier.arrived == 0) barrier.expected = threads;
  if (barrier.expected != threads)
    fail("barrier ", number, ": expected ", barrier.expected, " threads as those there before, got ", threads);
  give(barrier, waits);
  if (++barrier.arrived == threads) end_turn(barrier);
}

struct WaitForBarrier final : Condition {
  const NamedBarrier& barrier;
  const int number;
  const std::uint64_t turn;
  explicit WaitForBarrier(int n) : barrier(named(n)), number(n), turn(barrier.turn) {}
  bool ready() override { return barrier.turn != turn; }
  std::string describe() const override {
    return "barrier " + std::to_string(number) + " (" + std::to_string(barrier.arrived) + " of " +
           std::to_string(barrier.expected) + " threads are there)";
  }
};

// Threads that have ended are not waited for.
struct WaitForThreads final : Condition {
  NamedBarrier& barrier = now.block->barriers[0];
  Block& block = *now.block;
  const std::uint64_t turn = barrier.turn;
  bool ready() override {
    if (barrier.turn == turn && barrier.arrived >= static_cast<int>(block.live)) end_turn(barrier);
    return barrier.turn != turn;
  }
  std::string describe() const override {
    return "__syncthreads() (" + std::to_string(barrier.arrived) + " of " + std::to_string(block.live) +
           " threads are there)";
  }
};

Mbarrier64& mbarrier(const std::uint64_t* word) {
  if (Races* races = now.block->races.get())
    races->by_thread(now.thread->index, word, 2, false, __builtin_return_address(0));
  const auto found = now.block->mbarriers.find(word);
  if (found == now.block->mbarriers.end()) fail("mbarrier at ", shared_address(word), ": expected one that is initialised");
  return found->second;
}

void take_phase(const Mbarrier64& barrier) {
  if (Races* races = now.block->races.get(); races != nullptr && barrier.ended.seen)
    races->take(now.thread->index, barrier.ended);
}

struct WaitForPhase final : Condition {
  const Mbarrier64& barrier;
  const std::uint32_t address, parity;
  const std::uint64_t phase;
  WaitForPhase(const std::uint64_t* word, std::uint32_t p)
      : barrier(mbarrier(word)), address(shared_address(word)), parity(p), phase(barrier.phase) {}
  bool ready() override {
    if ((phase & 1) != parity) return true;
    if (barrier.phase >= phase + 2)
      fail("mbarrier at ", address, ": a thread waits for phase ", phase, ", which phase ", barrier.phase,
           " has overtaken: with parity alone it would go on waiting");
    return barrier.phase != phase;
  }
  std::string describe() const override {
    return "mbarrier at " + std::to_string(address) + ", parity " + std::to_string(parity) + " (phase " +
           std::to_string(barrier.phase) + ": " + std::to_string(barrier.pending) + " of " + std::to_string(barrier.count) +
           " arrivals and " + std::to_string(barrier.bytes) + " bytes to come)";
  }
};

struct WaitForFlag final : Condition {
  const std::uint32_t* flag;
  explicit WaitForFlag(const std::uint32_t* f) : flag(f) {}
  bool ready() override { return (*flag & 1) != 0; }
  std::string describe() const override { return "a flag in global memory"; }
};

struct WaitForKernel final : Condition {
  const std::size_t kernel = now.block->kernel;
  bool ready() override { return ended(kernel - 1); }
  std::string describe() const override { return "the kernel ahead (griddepcontrol.wait)"; }
};

}  // namespace

void undefined(const char* what) { fail("undefined on the device: ", what); }
unsigned lane() { return now.lane(); }
unsigned thread_index() { return now.thread->index; }

std::uint32_t shared_address(const void* p) {
  const auto offset = static_cast<const char*>(p) - shared_window();
  if (offset < 0 || offset >= static_cast<std::ptrdiff_t>(kSharedOfBlock))
    fail("expected an address in the block's dynamic shared memory, got one outside");
  return static_cast<std::uint32_t>(offset);
}
char* shared_pointer(std::uint32_t address, std::size_t bytes) {
  if (address + bytes > kSharedOfBlock) fail("shared memory: expected an address below ", kSharedOfBlock, ", got ", address);
  return shared_window() + address;
}

void sync_threads() {
  give(now.block->barriers[0], true);
  ++now.block->barriers[0].arrived;
  WaitForThreads condition;
  wait(condition);
}
void sync_warp(unsigned mask) {
  int nothing = 0;
  meet("__syncwarp()", mask, nothing, [mask](int* const*) {
    Races* races = now.block->races.get();
    if (races == nullptr) return;
    Join join;
    const unsigned first = now.thread->index / 32 * 32;
    for (unsigned i = 0; i < 32; ++i)
      if (mask >> i & 1) races->give(first + i, join);
    const Races::Both both = races->freeze(join);
    for (unsigned i = 0; i < 32; ++i)
      if (mask >> i & 1) races->take_all(first + i, both);
  });
}
void barrier_sync(int barrier, int threads) {
  WaitForBarrier condition(barrier);
  arrive(barrier, threads, true);
  wait(condition);
}
void barrier_arrive(int barrier, int threads) { arrive(barrier, threads, false); }

unsigned ballot(unsigned mask, bool x) {
  struct {
    bool x;
    unsigned all;
  } mine{x, 0};
  meet("a vote", mask, mine, [mask](auto* const* of) {
    unsigned all = 0;
    for (unsigned i = 0; i < 32; ++i)
      if (mask >> i & 1 && of[i]->x) all |= 1u << i;
    for (unsigned i = 0; i < 32; ++i)
      if (mask >> i & 1) of[i]->all = all;
  });
  return mine.all;
}
std::uint64_t shuffle_bits(unsigned mask, std::uint64_t x, unsigned lane) {
  struct {
    std::uint64_t x, got;
    unsigned from;
  } mine{x, 0, lane};
  meet("a shuffle", mask, mine, [mask](auto* const* of) {
    for (unsigned i = 0; i < 32; ++i) {
      if (!(mask >> i & 1)) continue;
      if (!(mask >> of[i]->from & 1)) fail("a shuffle: expected a lane of the mask, got ", of[i]->from);
      of[i]->got = of[of[i]->from]->x;
    }
  });
  return mine.got;
}

void mbarrier_init(std::uint64_t* word, std::uint32_t count) {
  if (count == 0) fail("mbarrier: expected a count of at least 1, got 0");
  if (Races* races = now.block->races.get()) races->by_thread(now.thread->index, word, 8, true, __builtin_return_address(0));
  Mbarrier64& barrier = now.block->mbarriers[word] = {};
  barrier.count = barrier.pending = count;
  *word = 0;
}
void mbarrier_arrive(std::uint64_t* word, std::int64_t expected_bytes) {
  Mbarrier64& barrier = mbarrier(word);
  if (barrier.pending == 0)
    fail("mbarrier at ", shared_address(word), ": expected ", barrier.count, " arrivals in phase ", barrier.phase,
         ", got more");
  barrier.bytes += expected_bytes;
  --barrier.pending;
  Races* races = now.block->races.get();
  if (races != nullptr) races->give(now.thread->index, barrier.join);
  barrier.settle(races);
}
bool mbarrier_ended(std::uint64_t* word, std::uint32_t parity) {
  const Mbarrier64& barrier = mbarrier(word);
  if ((barrier.phase & 1) != parity) {
    take_phase(barrier);
    return true;
  }
  now.thread->polled = true;
  switch_context(now.thread->context, now.block->scheduler);
  return false;
}
void mbarrier_wait(std::uint64_t* word, std::uint32_t parity) {
  WaitForPhase condition(word, parity);
  wait(condition);
  take_phase(condition.barrier);
}

void release(std::uint32_t* flag, std::uint32_t bits) { *flag |= bits; }
std::uint32_t acquire(const std::uint32_t* flag) {
  WaitForFlag condition(flag);
  wait(condition);
  return *flag;
}
void wait_for_dependency() {
  WaitForKernel condition;
  wait(condition);
}
void fence_async() {
  if (Races* races = now.block->races.get()) races->fence(now.thread->index);
}
void launch_dependents() { now.block->released = true; }

namespace {

struct Matrices {
  std::uint32_t* d;
  std::uint32_t address;
  const void* pc = nullptr;  // of the access to address
};
// The 16 bytes whose address a lane has given.
char* row_of(const Matrices& of, int lane, bool write) {
  if (of.address % 16 != 0) fail("matrices: expected an address that is a multiple of 16, got ", of.address);
  char* at = shared_pointer(of.address, 16);
  if (Races* races = now.block->races.get())
    races->by_thread(now.thread->index / 32 * 32 + static_cast<unsigned>(lane), at, 16, write, of.pc);
  return at;
}

// Element (row, column) of a matrix in a register of every lane.
std::uint32_t half_of(const Matrices* const* of, int matrix, int row, int column) {
  return of[4 * row + column / 2]->d[matrix] >> 16 * (column % 2) & 0xffff;
}

}  // namespace

void ldmatrix_x4(std::uint32_t (&d)[4], std::uint32_t address, bool transposed) {
  Matrices mine{d, address, __builtin_return_address(0)};
  meet(transposed ? "ldmatrix.trans" : "ldmatrix", kAll, mine, [transposed](Matrices* const* of) {
    for (int matrix = 0; matrix < 4; ++matrix) {
      std::uint16_t x[8][8];
      for (int row = 0; row < 8; ++row) std::memcpy(x[row], row_of(*of[8 * matrix + row], 8 * matrix + row, false), 16);
      for (int lane = 0; lane < 32; ++lane) {
        const int i = lane / 4, j = 2 * (lane % 4);
        of[lane]->d[matrix] = transposed ? x[j][i] | static_cast<std::uint32_t>(x[j + 1][i]) << 16
                                         : x[i][j] | static_cast<std::uint32_t>(x[i][j + 1]) << 16;
      }
    }
  });
}
void stmatrix_x4_trans(std::uint32_t address, const std::uint32_t (&d)[4]) {
  std::uint32_t copy[4] = {d[0], d[1], d[2], d[3]};
  Matrices mine{copy, address, __builtin_return_address(0)};
  meet("stmatrix.trans", kAll, mine, [](Matrices* const* of) {
    for (int matrix = 0; matrix < 4; ++matrix)
      for (int row = 0; row < 8; ++row) {
        std::uint16_t x[8];
        for (int column = 0; column < 8; ++column) x[column] = static_cast<std::uint16_t>(half_of(of, matrix, column, row));
        std::memcpy(row_of(*of[8 * matrix + row], 8 * matrix + row, true), x, 16);
      }
  });
}
std::uint32_t movmatrix_trans(std::uint32_t a) {
  std::uint32_t d = a;
  Matrices mine{&d, 0, nullptr};
  meet("movmatrix", kAll, mine, [](Matrices* const* of) {
    std::uint32_t out[32];
    for (int lane = 0; lane < 32; ++lane)
      out[lane] = half_of(of, 0, 2 * (lane % 4), lane / 4) | half_of(of, 0, 2 * (lane % 4) + 1, lane / 4) << 16;
    for (int lane = 0; lane < 32; ++lane) *of[lane]->d = out[lane];
  });
  return d;
}

}  // namespace deltagauge::host
