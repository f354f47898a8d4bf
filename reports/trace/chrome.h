// A trace as Chrome trace JSON, for viewers that read no Perfetto protobuf. Tracks below a process become threads named
// by their path; counters carry their unit in the name; numbers that are not finite are strings.
#pragma once
#include <string>

#include "reports/trace/trace.h"

namespace deltagauge::reports::trace {

// Over limit bytes, slices of the deepest tracks are dropped; an instant in the trace says so.
std::string to_chrome(const Trace& trace, std::size_t limit = kDefaultLimit);

}  // namespace deltagauge::reports::trace
