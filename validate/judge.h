// Judge: a verdict on what a backend gave, from metrics and budgets. Outcome and metrics only; nothing runs here.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "reports/report.h"
#include "validate/context.h"
#include "validate/metrics.h"

namespace deltagauge::validate {

struct Verdict {
  reports::Outcome outcome = reports::Outcome::pass;
  std::string reason;  // empty on a pass; several breaches are joined by "; "
  std::map<std::string, reports::TensorMetrics> tensors;
  std::map<std::string, double> values{};  // single figures that the check finds, by name
  std::int64_t compared = 0;               // elements that were held against something

  void add_failure(const std::string& why);  // outcome becomes fail
};
Verdict skip(std::string reason);
// The verdict, but a skip in place of a pass that compared nothing.
Verdict unless_empty(Verdict verdict);

// Measures one tensor, files the metrics and fails the verdict when a value is non-finite where the right one is not, or
// a ratio passes its threshold.
void judge_tensor(std::string_view name, const Tensor& got, const Yardstick& yardstick, Verdict& verdict);

// The free bound on an inverse (floor.h): no entry may pass it by more than the entry's error budget. Needs no oracle.
void judge_inverse_bound(const Problem& problem, const Tensors& inputs, const Tensor& Ainv, const Yardstick& yardstick,
                         Verdict& verdict);

}  // namespace deltagauge::validate
