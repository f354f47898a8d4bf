// What a backend's stages spanned: from the emulator, which sees every store, or from what a kernel gives (its outputs, and
// intermediates where it has taps).
#pragma once
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "core/backend.h"
#include "reference/staging.h"
#include "reports/report.h"
#include "validate/yardsticks.h"

namespace deltagauge::validate {

// The staging that a backend of the reference replays, or null for any other backend.
const reference::Staging* emulated_staging(const Backend& backend);

struct StageRanges {
  Tensors outputs;
  std::map<std::string, reports::StageRange> ranges;  // by stage; overflows: values that are not finite once stored
  std::map<std::string, double> values;               // STAGE.min_exponent .max_exponent .headroom_bits .subnormal_bits
  // The stage that is not finite and should be, in words; empty: none. An output should be finite as the judge says
  // (metrics.h), an intermediate as long as every right output fits its format. Of several stages the one named is the first
  // in the order of the algorithm that a finite value left, or the first that got none.
  std::string overflow;
};

// Runs the backend once. yardsticks: of every output. right_tap gives the right values of an intermediate, f64, or null:
// then only its subnormal values count as flushes.
StageRanges stage_ranges(const Backend& backend, const Problem& problem, const Tensors& inputs, const Yardsticks& yardsticks,
                         const std::function<const Tensor*(std::string_view tap)>& right_tap);

}  // namespace deltagauge::validate
