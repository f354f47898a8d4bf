// HostReplay: a replay emulated on the CPU. Buffers of a fixed capacity; each replay learns its layout from what stands in
// cu_seqlens, state_indices and has_initial_state, as a captured kernel must, and answers with the backend's plan.
#pragma once
#include <span>
#include <string_view>

#include "core/arena.h"
#include "validate/replay/replayable.h"

namespace deltagauge::validate {

// Faults that captured kernels have had, for tests.
enum class ReplayFault : std::uint8_t {
  none,
  stale_end,             // the last sequence ends where it ended at the capture
  empty_counted,         // an empty sequence takes one token
  tail_past_end,         // a last chunk of one token takes two
  minus_one_written,     // the sequence of index -1 writes a slot, counted from the pool's end
  suffix_read,           // the last token's row comes from past the end
  host_synchronisation,  // waits for the host inside the replay
};
struct ReplayFaultInfo {
  ReplayFault fault;
  std::string_view name;
};
std::span<const ReplayFaultInfo> replay_faults();  // without none

class HostReplay : public Replayable {
 public:
  // backend outlives it.
  HostReplay(const Backend& backend, const Problem& capacity, const Tensors& inputs, ReplayFault fault = ReplayFault::none);
  void load(const Tensors& inputs) override;
  void replay() override;
  Tensors outputs() const override;
  std::vector<std::string> audit() const override { return arena_.audit(); }
  std::vector<bool> untouched(std::string_view output) const override { return arena_.untouched(output); }
  std::optional<Counts> counts() const override { return counts_; }

 private:
  Problem layout_in(const Tensors& inputs) const;
  void spoil(Problem& layout, Tensors& inputs);
  void write_a_slot(const Problem& layout, const Tensors& inputs);

  const Backend& backend_;
  const Problem capacity_;
  Arena arena_{Fill::nan};
  ReplayFault fault_;
  std::int64_t captured_end_;
  Counts counts_;
};

}  // namespace deltagauge::validate
