// Context: one case while it is judged. Its inputs, the oracle's answers, the emulators' answers and the budgets are each
// computed once, when first asked for, and shared by every backend and check.
#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/sweep.h"
#include "oracle/oracle.h"
#include "validate/metrics.h"
#include "validate/rows.h"

namespace deltagauge::validate {

inline constexpr std::uint64_t kDraws = 4;

// What a tensor is held against.
struct Yardstick {
  const Tensor* want = nullptr;  // f64
  Rows rows;
  Budget budget;
};

class Context {
 public:
  // test must outlive the context.
  Context(const SweepCase& test, Tensors inputs, oracle::Precision precision);

  const SweepCase& test() const { return test_; }
  const Problem& problem() const { return test_.test.problem; }
  const Tensors& inputs() const { return inputs_; }

  const Tensors& gold();  // outputs, f64
  // For an output of the case, or a tap, of a backend that declares this staging. Taps are counted in the staging's chunks.
  const Yardstick& output(std::string_view staging, std::string_view tensor);
  // The same with the largest row budgets of kDraws answers that f32 arithmetic leaves open (reference::Staging::draw). One
  // answer is a small sample where a head's rows share what is rounded.
  const Yardstick& redrawn_output(std::string_view staging, std::string_view tensor);
  const Yardstick& tap(std::string_view staging, std::string_view tensor);
  bool has_tap(std::string_view staging, std::string_view tensor);  // both the oracle and the emulator form it
  Problem tap_problem(std::string_view staging) const;              // the case with that chunk

 private:
  const Tensors& gold_taps(const Problem& problem);
  const Tensors& emulated(std::string_view staging, bool taps, std::uint64_t draw = 0);
  Yardstick yardstick(std::string_view staging, std::string_view tensor, std::uint64_t draw);

  const SweepCase& test_;
  Tensors inputs_;
  oracle::Precision precision_;
  std::optional<Tensors> gold_;
  std::map<std::int64_t, Tensors> gold_taps_;                               // by chunk
  std::map<std::string, Tensors, std::less<>> emulated_, emulated_taps_;    // by "staging draw"
  std::map<std::string, Yardstick, std::less<>> outputs_, redrawn_, taps_;  // by "staging tensor"
};

}  // namespace deltagauge::validate
