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

namespace deltagauge::validate {

// The staging that a backend of the reference replays, or null for any other backend.
const reference::Staging* emulated_staging(const Backend& backend);

struct StageRanges {
  Tensors outputs;
  std::map<std::string, reports::StageRange> ranges;  // by stage; overflows: values that are not finite once stored
  std::map<std::string, double> values;               // STAGE.min_exponent .max_exponent .headroom_bits .subnormal_bits
  // The stage that is not finite and should be, first in the order of the algorithm, in words. Empty: none. An output should
  // be finite where its right value fits its format; an intermediate as long as every right output fits.
  std::string overflow;
};

// Runs the backend once. gold: outputs in f64. right_tap gives the right values of an intermediate, f64, or null: then only
// its subnormal values count as flushes.
StageRanges stage_ranges(const Backend& backend, const Problem& problem, const Tensors& inputs, const Tensors& gold,
                         const std::function<const Tensor*(std::string_view tap)>& right_tap);

}  // namespace deltagauge::validate
