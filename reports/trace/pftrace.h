// A trace as Perfetto protobuf (TrackEvent packets), for ui.perfetto.dev and trace_processor.
#pragma once
#include <string>

#include "reports/trace/trace.h"

namespace deltagauge::reports::trace {

// Over limit bytes, slices of the deepest tracks are dropped; an instant in the trace says so.
std::string to_pftrace(const Trace& trace, std::size_t limit = kDefaultLimit);

}  // namespace deltagauge::reports::trace
