// Replayable: a call captured once in buffers of a capacity, then run again and again on layouts that stand in those
// buffers. Any backend has one: a plan on a device becomes a CUDA graph, a plan on the CPU an emulation of one.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"

namespace deltagauge::validate {

class Replayable {
 public:
  virtual ~Replayable() = default;
  // Inputs of a layout with the capacity's T, N and slots into the buffers. Outputs hold sentinels afterwards; rows past the
  // layout's end are whatever the inputs hold there (make_inputs: NaN).
  virtual void load(const Tensors& inputs) = 0;
  virtual void replay() = 0;  // what was captured, once; then reads the buffers back
  virtual Tensors outputs() const = 0;
  virtual std::vector<std::string> audit() const = 0;  // as Plan
  virtual std::vector<bool> untouched(std::string_view output) const = 0;

  // Inside the replays so far, where they are counted. On CUDA they are not: there it is the capture that refuses both.
  struct Counts {
    std::int64_t allocations = 0, synchronisations = 0;
  };
  virtual std::optional<Counts> counts() const { return std::nullopt; }
  // Mean seconds of a replay over so many, where the device has a clock. The buffers are not read back.
  virtual std::optional<double> seconds(std::int64_t /*calls*/) { return std::nullopt; }
};

// inputs: of the capacity. Throws Error when the capture fails.
std::unique_ptr<Replayable> make_replayable(const Backend& backend, const Problem& capacity, const Tensors& inputs);

// In a build with CUDA; else throws Error. plan: a DevicePlan.
std::unique_ptr<Replayable> make_graph_replay(std::unique_ptr<Plan> plan);

}  // namespace deltagauge::validate
