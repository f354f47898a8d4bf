// Two small kernels that meet through everything the executor models, and faults planted in them that it must catch.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/host/executor.h"

namespace deltagauge::host {

enum class Fault : std::uint8_t {
  none,
  barrier,          // a tile is sent before all of it is written
  proxy_fence,      // without fence.proxy.async
  store_wait,       // a tile is overwritten before it has been read
  store_done,       // a flag is set before the tile is there
  flag,             // a tile is loaded before its flag is set
  overtaken,        // a stage's phases end twice before those who wait for the first look again
  parity,           // a stage is waited for by the parity of another turn
  missing_arrival,  // a stage waits for one arrival more than come
  arrival,          // a stage is free before all warps have read it
  product_wait,     // accumulators are read before the products are done
  product_fence,    // products without wgmma.fence
  dependency,       // the kernel behind does not wait for this one
  alignment,        // a pair of floats is read at an odd one
};
inline constexpr int kFaultTurns = 5, kFaultSums = 64;  // tiles; their columns
// Sums over tokens of the columns of all tiles, whose elements are small integers; as the kernels find them.
std::vector<float> sums_of_tiles(const Options& options, Fault fault);
std::vector<float> right_sums_of_tiles();

}  // namespace deltagauge::host
