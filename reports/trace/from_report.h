// A trace of a report. Process "host": a track a backend, a slice a result laid end to end by its seconds, the worst
// row ratio and the active tokens as counters, an instant a failure; below it the spans of a row, on track "replays" where
// it replays and on "stages" elsewhere. Process of the device: a slice a timed row with its samples below, counters, and on
// track "kernels" what the device measured of a span.
#pragma once
#include "reports/report.h"
#include "reports/trace/trace.h"

namespace deltagauge::reports::trace {

// A flow ties a timed row on the host, the row on the device and, where it failed, the failure; another one the capture of a
// row, one replay, what the device measured of it, its verdict and, where that is why the row failed, the failure.
Trace trace_of(const Report& report);

}  // namespace deltagauge::reports::trace
