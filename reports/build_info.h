// What made a report: this build (version, commit, compiler, GPU architectures) and this machine.
#pragma once
#include "reports/report.h"

namespace deltagauge::reports {

Tool this_tool();  // git_sha is "unknown" when the sources were built outside a git checkout
Host this_host();

}  // namespace deltagauge::reports
