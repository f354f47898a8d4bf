// Planted faults: the staged forward of gdn, or gdn_decode, with one thing wrong, for the judge's selftest. Each stands for
// a fault that users of such kernels met (docs/numerics.md). The correct run is reference::run.
#pragma once
#include <span>
#include <string_view>

#include "core/problem.h"
#include "core/tensor.h"
#include "reference/staging.h"

namespace deltagauge::reference {

struct Fault {
  std::string_view name;                  // "state_dropped": the row's key in the kill matrix
  std::string_view summary;               // what goes wrong
  std::string_view needs;                 // in words, when it must show in o or final_state
  bool (*shows)(const Problem& problem);  // the same as a predicate: where false, the fault may be harmless
};

std::span<const Fault> faults(std::string_view op);  // gdn, gdn_decode; none of another op
const Fault& fault(std::string_view name);           // throws Error naming the known ones

// As run() without taps, with the fault, which must be one of problem.op; else throws Error. The staging of a fault of gdn
// must be a chunk form (chunk > 0); one of gdn_decode has its own. Faults tied to one place hit the last head of the longest
// sequence.
Tensors run_with_fault(const Problem& problem, const Tensors& inputs, const Staging& staging, const Fault& fault);

}  // namespace deltagauge::reference
