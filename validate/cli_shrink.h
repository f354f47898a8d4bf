// Failures cut down to small cases: validate --shrink and case shrink.
#pragma once
#include "core/backend.h"
#include "reports/report.h"
#include "validate/cli.h"
#include "validate/run.h"

namespace deltagauge::validate::cli {

// For each backend, check and tensor that fails, the first such row: its repro becomes the command of the small case.
void shrink_failures(const ValidateArgs& args, const RunOptions& options, const Registry& registry, reports::Report& report);

}  // namespace deltagauge::validate::cli
