// Writes a trace into a file, in the format that its ending names.
#pragma once
#include <string>

#include "reports/trace/trace.h"

namespace deltagauge::reports::trace {

// .pftrace is Perfetto protobuf, .json Chrome JSON. Any other ending throws Error; require_trace_path says so early.
void write_trace(const Trace& trace, const std::string& path);
void require_trace_path(const std::string& path);

}  // namespace deltagauge::reports::trace
