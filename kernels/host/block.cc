#include "kernels/host/block.h"

#include <link.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <map>

#include "core/error.h"
#include "kernels/host/shadow/cuda_runtime.h"

uint3 threadIdx, blockIdx, blockDim, gridDim;

namespace deltagauge::host {

Now now;

namespace {

void run_thread() {
  Block& block = *now.block;
  try {
    (*block.body)();
    for (auto& group : now.thread->groups)
      for (auto& copy : group) copy();
  } catch (...) {
    if (!block.failure) block.failure = std::current_exception();
  }
  now.thread->done = true;
  --block.live;
  switch_context(now.thread->context, block.scheduler);
}

// The thread-local storage of this host thread, which holds all shared memory of its block.
std::pair<char*, std::size_t> own_storage() {
  std::pair<char*, std::size_t> found{};
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* to) {
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const auto& part = info->dlpi_phdr[i];
          auto* begin = static_cast<char*>(info->dlpi_tls_data);
          if (part.p_type == PT_TLS && begin <= shared_window() && shared_window() < begin + part.p_memsz)
            *static_cast<std::pair<char*, std::size_t>*>(to) = {begin, part.p_memsz};
        }
        return 0;
      },
      &found);
  return found;
}

}  // namespace

void Block::begin(char* stacks) {
  std::memset(shared_window(), 0xff, kSharedOfBlock);  // NaN in every format
  live = threads_per_block;
  threads.resize(threads_per_block);
  warps.resize((threads_per_block + 31) / 32);
  if (options().races) {
    const auto [memory, bytes] = own_storage();
    races = std::make_unique<Races>(threads_per_block, memory, bytes);
  }
  for (unsigned i = 0; i < threads_per_block; ++i) {
    threads[i].index = i;
    prepare(threads[i].context, stacks + i * kStackBytes, kStackBytes, run_thread);
  }
}

void Block::resume(Thread& thread) {
  now = {this, &thread};
  threadIdx = {thread.index, 0, 0};
  blockIdx = {index, 0, 0};
  blockDim = {threads_per_block, 1, 1};
  gridDim = {blocks, 1, 1};
  thread.waits = nullptr;
  thread.polled = false;
  if (races) watch = races->watch();
  switch_context(scheduler, thread.context);
  watch = {};
  if (failure) std::rethrow_exception(failure);
}

bool Block::run_warp(unsigned w) {
  bool moved = false, again = true;
  while (again) {
    again = false;
    for (unsigned i = 32 * w; i < 32 * (w + 1) && i < threads.size(); ++i) {
      Thread& thread = threads[i];
      if (thread.done || (thread.waits != nullptr && !thread.waits->ready())) continue;
      resume(thread);
      if (!thread.polled) again = true;
    }
    moved |= again;
    if (chance(8)) break;
  }
  return moved;
}

bool Block::turn() {
  bool moved = false, again = true;
  const auto count = static_cast<unsigned>(warps.size());
  for (int pass = 0; pass < passes && again && live > 0; ++pass) {
    again = false;
    const unsigned first = options().mode == Mode::shuffled ? static_cast<unsigned>(draw() % count) : 0;
    for (unsigned i = 0; i < count; ++i) {
      const unsigned w = (first + (options().mode == Mode::late ? count - 1 - i : i)) % count;
      again |= run_warp(w);
    }
    moved |= again;
  }
  return moved;
}

// Lanes of a warp that wait for the same thing in one line.
std::string Block::describe() const {
  std::string text;
  for (std::size_t w = 0; w < warps.size(); ++w) {
    std::map<std::string, unsigned> lanes;
    for (std::size_t i = 32 * w; i < 32 * (w + 1) && i < threads.size(); ++i)
      if (const Thread& t = threads[i]; !t.done)
        lanes[t.waits ? t.waits->describe() : t.polled ? "what it polls" : "its turn"] |= 1u << (i % 32);
    for (const auto& [what, mask] : lanes) {
      char line[64];
      std::snprintf(line, sizeof line, "\n  kernel %zu block %u warp %zu lanes %08x: ", kernel, index, w, mask);
      text += line + what;
    }
  }
  return text;
}

void wait(Condition& condition) {
  if (condition.ready()) return;
  now.thread->waits = &condition;
  switch_context(now.thread->context, now.block->scheduler);
}

}  // namespace deltagauge::host

// What -fsanitize=alignment calls in place of an access through a misaligned pointer; its frames hold no way for an
// exception.
struct SanitizedAccess {
  struct {
    const char* file;
    std::uint32_t line, column;
  } at;
  const void* type;
  std::uint8_t log2_alignment, kind;
};
extern "C" [[noreturn]] void __ubsan_handle_type_mismatch_v1_abort(const SanitizedAccess* access, const void* p) {
  using namespace deltagauge;
  host::Block& block = *host::now.block;
  try {
    fail(access->at.file, ":", access->at.line, ": expected an address that is a multiple of ", 1 << access->log2_alignment,
         ", got one ", reinterpret_cast<std::uintptr_t>(p) % (std::uintptr_t{1} << access->log2_alignment), " past");
  } catch (...) {
    if (!block.failure) block.failure = std::current_exception();
  }
  host::switch_context(host::now.thread->context, block.scheduler);
  std::abort();  // resume() has thrown
}
