// Where the kernels' dynamic shared memory stands: each namespace that declares it gets the one window of the host thread,
// which is the block's.
#include "kernels/host/block.h"

extern "C" {
alignas(1024) thread_local char deltagauge_host_window[deltagauge::host::kSharedOfBlock];
}

#define DELTAGAUGE_SHARED extern thread_local char shared[] __attribute__((alias("deltagauge_host_window")))

namespace deltagauge::kernels_on_host {  // `kernels` there, see CMakeLists.txt
namespace host_faults {
DELTAGAUGE_SHARED;
}
namespace gdn {
namespace chunk_sm80 {
DELTAGAUGE_SHARED;
}
namespace chunk_sm90 {
DELTAGAUGE_SHARED;
}
}  // namespace gdn
}  // namespace deltagauge::kernels_on_host

namespace deltagauge::host {

char* shared_window() { return deltagauge_host_window; }

}  // namespace deltagauge::host
