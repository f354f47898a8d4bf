#include "validate/replay/host_replay.h"

#include <algorithm>
#include <cstring>

#include "core/op.h"
#include "validate/backends/arena_plan.h"
#include "validate/checks/check.h"

namespace deltagauge::validate {
namespace {

constexpr ReplayFaultInfo kFaults[] = {{ReplayFault::stale_end, "stale end"},
                                       {ReplayFault::empty_counted, "empty sequence counted"},
                                       {ReplayFault::tail_past_end, "one-token tail past the end"},
                                       {ReplayFault::minus_one_written, "slot of index -1 written"},
                                       {ReplayFault::suffix_read, "suffix read"},
                                       {ReplayFault::host_synchronisation, "host synchronisation"}};

// The elements of a tensor that holds one number a sequence, as an axis of a case writes them.
std::string as_list(const Tensor& tensor) {
  std::string text;
  for (const double x : to_f64(tensor)) text += (text.empty() ? "" : "+") + std::to_string(static_cast<std::int64_t>(x));
  return text;
}

void write_offsets(const Problem& layout, Tensors& inputs) {
  if (op_info(layout.op).one_token) return;
  const auto offsets = layout.offsets();
  Tensor& cu = inputs["cu_seqlens"];
  for (std::size_t i = 0; i < offsets.size(); ++i) cu.store(static_cast<std::int64_t>(i), static_cast<double>(offsets[i]));
}

}  // namespace

std::span<const ReplayFaultInfo> replay_faults() { return kFaults; }

HostReplay::HostReplay(const Backend& backend, const Problem& capacity, const Tensors& inputs, ReplayFault fault)
    : backend_(backend), capacity_(capacity), fault_(fault), captured_end_(capacity.tokens()) {
  add_tensors(arena_, capacity, inputs);
  arena_.reset();
}

void HostReplay::load(const Tensors& inputs) {
  replace_inputs(arena_, capacity_, inputs);
  arena_.reset();
}

Problem HostReplay::layout_in(const Tensors& inputs) const {
  Problem layout = capacity_;
  layout.capacity = capacity_.rows();
  layout.ids.clear();
  if (!op_info(layout.op).one_token) {
    const std::vector<double> ends = to_f64(get(inputs, "cu_seqlens"));
    for (std::size_t n = 0; n < layout.lengths.size(); ++n)
      layout.lengths[n] = static_cast<std::int64_t>(ends[n + 1]) - static_cast<std::int64_t>(ends[n]);
  }
  if (const Tensor* indices = find(inputs, "state_indices")) layout.idx = as_list(*indices);
  if (const Tensor* has = find(inputs, "has_initial_state")) layout.has = as_list(*has);
  return layout;
}

void HostReplay::replay() {
  Tensors inputs = inputs_in(arena_, capacity_);
  Problem layout = layout_in(inputs);
  const Problem right = layout;
  const Tensors right_inputs = inputs;
  spoil(layout, inputs);
  const Tensors results = outputs_of(backend_, layout, inputs);
  for (const TensorSpec& spec : op_info(layout.op).outputs(layout))
    put_rows(arena_, layout, spec.name, get(results, spec.name));
  if (fault_ == ReplayFault::minus_one_written && right.slots) write_a_slot(right, right_inputs);
}

Tensors HostReplay::outputs() const { return outputs_in(arena_, capacity_); }

void HostReplay::spoil(Problem& layout, Tensors& inputs) {
  auto& lengths = layout.lengths;
  const std::int64_t end = layout.tokens();
  if (fault_ == ReplayFault::stale_end) {
    lengths.back() = std::max<std::int64_t>(0, captured_end_ - (end - lengths.back()));
  } else if (fault_ == ReplayFault::empty_counted) {
    const auto empty = std::find(lengths.begin(), lengths.end(), 0);
    if (empty == lengths.end()) return;
    const auto next = std::find_if(empty, lengths.end(), [](std::int64_t length) { return length > 0; });
    if (next == lengths.end() && end == layout.rows()) return;
    *empty = 1;
    if (next != lengths.end()) --*next;
  } else if (fault_ == ReplayFault::tail_past_end) {
    if (lengths.back() % layout.chunk == 1 && end < layout.rows()) ++lengths.back();
  } else if (fault_ == ReplayFault::suffix_read && end > 0 && end < layout.rows()) {
    for (const TensorSpec& spec : op_info(layout.op).inputs(layout)) {
      if (spec.token_dim != 0) continue;
      Tensor& tensor = inputs.find(spec.name)->second;
      const std::size_t row = tensor.nbytes() / static_cast<std::size_t>(tensor.dim(0)), at = static_cast<std::size_t>(end);
      std::memcpy(tensor.data() + (at - 1) * row, tensor.data() + at * row, row);
      break;
    }
  } else if (fault_ == ReplayFault::host_synchronisation) {
    ++counts_.synchronisations;
  }
  write_offsets(layout, inputs);
}

// Gives the sequence of index -1 the last slot that no other has, and keeps of that answer what it wrote there.
void HostReplay::write_a_slot(const Problem& layout, const Tensors& inputs) {
  const auto slots = layout.state_indices();
  const auto victim = std::find(slots.begin(), slots.end(), -1);
  std::int64_t slot = layout.slots - 1;
  while (slot > 0 && std::find(slots.begin(), slots.end(), slot) != slots.end()) --slot;
  if (victim == slots.end() || slot == 0) return;
  Problem wrong = layout;
  Tensors wrong_inputs = inputs;
  Tensor& indices = wrong_inputs["state_indices"];
  indices.store(victim - slots.begin(), static_cast<double>(slot));
  wrong.idx = as_list(indices);
  const Tensor pool = get(outputs_of(backend_, wrong, wrong_inputs), "final_state");
  const std::size_t bytes = pool.nbytes() / static_cast<std::size_t>(pool.dim(0));
  arena_.put("final_state", slot * (pool.numel() / pool.dim(0)), pool.data() + static_cast<std::size_t>(slot) * bytes,
             bytes);
}

std::unique_ptr<Replayable> make_replayable(const Backend& backend, const Problem& capacity, const Tensors& inputs) {
  auto plan = backend.plan(capacity, inputs, {});
  if (dynamic_cast<DevicePlan*>(plan.get())) return make_graph_replay(std::move(plan));
  return std::make_unique<HostReplay>(backend, capacity, inputs);
}

}  // namespace deltagauge::validate
