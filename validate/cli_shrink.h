// Failures cut down to small cases: validate --shrink and case shrink.
#pragma once
#include "core/backend.h"
#include "reports/report.h"
#include "validate/cli.h"

namespace deltagauge::validate::cli {

// For each backend, check and tensor that fails, the first such row: its repro becomes the command of the small case, whose
// tensors are left beside the first JSON report (where one is written), as REPORT.shrunkN.safetensors.
void shrink_failures(const ValidateArgs& args, const Registry& registry, reports::Report& report);

}  // namespace deltagauge::validate::cli
