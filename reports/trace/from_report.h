// A trace of a report. Process "host": a track a backend, a slice a result laid end to end by its seconds, the worst
// row ratio as a counter, an instant a failure. Process of the device: a slice a timed row with its samples below, and
// counters.
#pragma once
#include "reports/report.h"
#include "reports/trace/trace.h"

namespace deltagauge::reports::trace {

// A flow ties a timed row on the host, the row on the device and, where it failed, the failure.
Trace trace_of(const Report& report);

}  // namespace deltagauge::reports::trace
