// Ranks as threads of one process.
#pragma once
#include <cstddef>
#include <functional>

#include "kernels/cp/transport.h"

namespace deltagauge::kernels::cp {

// What the ranks' buffers are, and how bytes of one become those of another.
struct LocalMemory {
  Memory kind = Memory::host;
  void (*copy)(void* to, const void* from, std::size_t bytes, void* stream) = nullptr;
};
extern const LocalMemory kHostMemory;

// Runs work once a rank, each on a thread of its own, and returns when all have. When a rank throws, the ranks that wait for
// it stop with an Error, and the first exception is thrown again here. Every rank gives all_gather the same stream.
void run_local(std::size_t world, const std::function<void(Transport&)>& work, const LocalMemory& memory = kHostMemory);

}  // namespace deltagauge::kernels::cp
