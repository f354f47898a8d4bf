// What made a report: this build (version, commit, compiler, GPU architectures), this machine, and when.
#pragma once
#include "reports/report.h"

namespace deltagauge::reports {

Tool this_tool();  // git_sha is "unknown" when the sources were built outside a git checkout
Host this_host();
std::string utc_now();  // 2026-01-31T12:00:00+00:00

}  // namespace deltagauge::reports
