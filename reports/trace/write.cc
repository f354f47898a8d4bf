#include "reports/trace/write.h"

#include "core/error.h"
#include "reports/file.h"
#include "reports/trace/chrome.h"
#include "reports/trace/pftrace.h"

namespace deltagauge::reports::trace {

void require_trace_path(const std::string& path) {
  if (!path.ends_with(".pftrace") && !path.ends_with(".json")) {
    fail(path, ": expected a file that ends in .pftrace (Perfetto) or .json (Chrome)");
  }
}

void write_trace(const Trace& trace, const std::string& path) {
  require_trace_path(path);
  write_file(path, path.ends_with(".json") ? to_chrome(trace) : to_pftrace(trace));
}

}  // namespace deltagauge::reports::trace
