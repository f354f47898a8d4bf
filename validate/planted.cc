#include "validate/planted.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "validate/backends/arena_plan.h"

namespace deltagauge::validate {
namespace {

// One element of a tensor of the arena, by its position in storage; positions past the payload reach into the guard.
class Element {
 public:
  Element(Arena& arena, std::string_view name, DType dtype, std::int64_t position)
      : dtype_(dtype),
        at_(arena.image().data() + arena.offset(name) + static_cast<std::size_t>(position) * size_of(dtype)) {}
  double value() const {
    Tensor t(dtype_, {1});
    std::memcpy(t.data(), at_, size_of(dtype_));
    return t.load(0);
  }
  void set(double value) {
    Tensor t(dtype_, {1});
    t.store(0, value);
    std::memcpy(at_, t.data(), size_of(dtype_));
  }
  void flip_lowest_bit() { at_[0] ^= std::byte{1}; }
  void copy(const Element& other) { std::memcpy(at_, other.at_, size_of(dtype_)); }

 private:
  DType dtype_;
  std::byte* at_;
};

std::int64_t o_row(const Problem& p) { return p.HV * p.V; }  // elements of o in a token row
// An input with a row of its own for every token.
struct Input {
  std::string_view name;
  std::int64_t row;  // elements
};
Input input_of(const Problem& p) {
  return p.op == "gdn_decode" ? Input{"packed_qkv", 2 * p.HK * p.K + p.HV * p.V} : Input{"v", o_row(p)};
}
std::size_t longest(const Problem& p) {
  return static_cast<std::size_t>(std::max_element(p.lengths.begin(), p.lengths.end()) - p.lengths.begin());
}
std::size_t first_empty(const Problem& p) {
  return static_cast<std::size_t>(std::find(p.lengths.begin(), p.lengths.end(), 0) - p.lengths.begin());
}
// Elements as the arena laid them out: the sentinel of an output.
void unwrite(Arena& arena, std::string_view name, DType dtype, std::int64_t first, std::int64_t count) {
  Arena fresh = arena;
  fresh.reset();
  for (std::int64_t i = first; i < first + count; ++i) Element(arena, name, dtype, i).copy(Element(fresh, name, dtype, i));
}

void reads_past_end(const Problem& p, Arena& arena, int) {  // masked by a multiplication with 0, which NaN survives
  const double beyond = Element(arena, input_of(p).name, p.io, p.rows() * input_of(p).row).value();
  Element last(arena, "o", p.io, p.tokens() * o_row(p) - 1);
  last.set(last.value() + 0 * beyond);
}
void reads_padding(const Problem& p, Arena& arena, int) {
  const double beyond = Element(arena, input_of(p).name, p.io, p.tokens() * input_of(p).row).value();
  Element last(arena, "o", p.io, p.tokens() * o_row(p) - 1);
  last.set(last.value() + 0 * beyond);
}
void writes_past_end(const Problem& p, Arena& arena, int) { Element(arena, "o", p.io, p.rows() * o_row(p)).set(0); }
void writes_before_start(const Problem& p, Arena& arena, int) { Element(arena, "o", p.io, -1).set(0); }
void writes_suffix_row(const Problem& p, Arena& arena, int) {
  for (std::int64_t i = 0; i < o_row(p); ++i) Element(arena, "o", p.io, p.tokens() * o_row(p) + i).set(0);
}
void leaves_element(const Problem& p, Arena& arena, int) { unwrite(arena, "o", p.io, p.tokens() * o_row(p) / 2, 1); }
void leaves_empty_state(const Problem& p, Arena& arena, int) {
  const std::int64_t size = p.HV * p.V * p.K;
  unwrite(arena, "final_state", p.state, static_cast<std::int64_t>(first_empty(p)) * size, size);
}
void changes_input(const Problem& p, Arena& arena, int) { Element(arena, input_of(p).name, p.io, 0).flip_lowest_bit(); }
void writes_null_slot(const Problem& p, Arena& arena, int) { Element(arena, "final_state", p.state, 0).set(0); }
void writes_between_slots(const Problem& p, Arena& arena, int) {
  Element(arena, "final_state", p.state, p.HV * p.V * p.K).set(0);
}
void changes_between_runs(const Problem& p, Arena& arena, int run) {
  if (run > 1) Element(arena, "o", p.io, p.tokens() * o_row(p) / 2).flip_lowest_bit();
}
void reads_later_token(const Problem& p, Arena& arena, int) {
  const std::int64_t first = p.offsets()[longest(p)], last = p.offsets()[longest(p) + 1] - 1;
  Element o(arena, "o", p.io, first * o_row(p));
  o.set(o.value() + std::max(1.0, std::abs(o.value())) * Element(arena, "v", p.io, last * o_row(p)).value());
}
void depends_on_batch(const Problem& p, Arena& arena, int) {
  if (p.sequences() > 1) Element(arena, "o", p.io, p.tokens() * o_row(p) - 1).flip_lowest_bit();
}
void one_nan(const Problem& p, Arena& arena, int) {
  Element(arena, "o", p.io, 0).set(std::numeric_limits<double>::quiet_NaN());
}
void last_bit(const Problem& p, Arena& arena, int) {
  Element(arena, "o", p.io, p.tokens() * o_row(p) / 2).flip_lowest_bit();
}

bool pooled(const Problem& p) { return p.slots > 0; }
bool apart(const Problem& p) { return p.slot_pad > 0; }
bool any_token(const Problem& p) { return p.tokens() > 0; }
bool padded(const Problem& p) { return p.tokens() > 0 && p.rows() > p.tokens(); }
bool has_empty(const Problem& p) { return first_empty(p) < p.lengths.size() && p.final_state == Switch::on; }
bool two_tokens(const Problem& p) { return p.lengths[longest(p)] > 1; }
bool two_sequences(const Problem& p) { return p.tokens() > 0 && p.sequences() > 1; }
bool lattice(const Problem& p) { return p.tokens() > 0 && p.data.kind == "lattice"; }

constexpr MemoryFault kFaults[] = {
    {"reads_past_end", "an input is read past its last row and masked by 0", "guard", any_token, reads_past_end},
    {"reads_padding", "a row of an input past the active end is read and masked by 0", "accuracy", padded, reads_padding},
    {"writes_past_end", "one element behind o is written", "guard", any_token, writes_past_end},
    {"writes_before_start", "one element before o is written", "guard", any_token, writes_before_start},
    {"writes_suffix_row", "a row of o past the active end is written", "guard", padded, writes_suffix_row},
    {"leaves_element", "one element of o is not written", "guard", any_token, leaves_element},
    {"leaves_empty_state", "the final state of an empty sequence is not written", "guard", has_empty, leaves_empty_state},
    {"changes_input", "one bit of an input changes", "guard", any_token, changes_input},
    {"writes_null_slot", "an element of slot 0 is written", "guard", pooled, writes_null_slot},
    {"writes_between_slots", "an element behind slot 0 is written", "guard", apart, writes_between_slots},
    {"changes_between_runs", "one bit of o changes from run to run", "determinism", any_token, changes_between_runs},
    {"reads_later_token", "the first token's output takes in the last token", "causal", two_tokens, reads_later_token},
    {"depends_on_batch", "one bit of o depends on the other sequences", "packing", two_sequences, depends_on_batch},
    {"one_nan", "one element of o is NaN", "accuracy", any_token, one_nan},
    {"last_bit", "one element of o is off by its last bit", "lattice", lattice, last_bit},
};

class PlantedPlan : public ArenaPlan {
 public:
  PlantedPlan(const Problem& problem, const Tensors& inputs, const PlanOptions& options, Compute compute,
              const MemoryFault* fault)
      : ArenaPlan(problem, inputs, options, std::move(compute)), fault_(fault) {}
  void run() override {
    ArenaPlan::run();
    if (fault_) fault_->spoil(problem_, arena_, ++runs_);
  }

 private:
  const MemoryFault* fault_;
  int runs_ = 0;
};

}  // namespace

std::span<const MemoryFault> memory_faults() { return kFaults; }

std::unique_ptr<Plan> PlantedBackend::plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const {
  const auto compute = [problem, answer = answer_, taps = options.taps](const Tensors& from_arena) {
    return answer(problem, from_arena, taps);
  };
  return std::make_unique<PlantedPlan>(problem, inputs, options, compute, fault_);
}

}  // namespace deltagauge::validate
