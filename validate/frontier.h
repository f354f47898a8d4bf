// Frontiers: how large one quantity of a case may become before a backend overflows or loses accuracy, by bisection.
//
// A value is safe when the accuracy verdict passes and no stage overflows (stage_ranges.h). The budgets are those of the
// same staging without range limits: its own emulator overflows where the backend does, and an emulator that loses
// everything would let the backend lose everything too.
#pragma once
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/backend.h"
#include "core/problem.h"
#include "oracle/oracle.h"
#include "reports/report.h"

namespace deltagauge::validate {

// Searched from start by factors until a value is unsafe or top is reached; then bisected.
struct Quantity {
  std::string_view name, meaning;
  double start, factor;
  double (*top)(const Problem& problem);
  void (*set)(Case& c, double x);
  bool of_g = false;  // it sets g, which a case with raw_gate=on has not
};
std::span<const Quantity> quantities();                // g sum_g h0 v beta
const Quantity& find_quantity(std::string_view name);  // throws Error naming the known ones

// Inputs and right outputs by case id, so that backends share them.
class Draws {
 public:
  explicit Draws(oracle::Precision precision) : precision_(precision) {}
  struct Draw {
    Tensors inputs, gold;
  };
  const Draw& get(const Case& c);  // throws Refused as make_inputs does
  void clear() { draws_.clear(); }

 private:
  oracle::Precision precision_;
  std::map<std::string, std::unique_ptr<Draw>> draws_;
};

// One row of check "frontier": test is the case on the safe side, name says where and why the next value fails, values hold
// QUANTITY.largest_safe, .smallest_unsafe (absent when all are safe to the top), .largest_without_overflow and
// .largest_accurate. Fails where the starting value is unsafe. Does not catch what the backend throws.
reports::Result frontier(const Case& base, const Backend& backend, const Quantity& quantity, Draws& draws);

}  // namespace deltagauge::validate
