#include "kernels/runtime/nvtx.h"

#include <nvtx3/nvToolsExt.h>

namespace deltagauge::kernels::runtime {
namespace {

// One domain for all, so that a profiler can be told to show or capture only these ranges.
nvtxDomainHandle_t domain() {
  static const nvtxDomainHandle_t made = nvtxDomainCreateA("deltagauge");
  return made;
}

}  // namespace

NvtxRange::NvtxRange(const char* name) {
  nvtxEventAttributes_t attributes = {};
  attributes.version = NVTX_VERSION;
  attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
  attributes.messageType = NVTX_MESSAGE_TYPE_ASCII;
  attributes.message.ascii = name;
  nvtxDomainRangePushEx(domain(), &attributes);
}

NvtxRange::~NvtxRange() { nvtxDomainRangePop(domain()); }

}  // namespace deltagauge::kernels::runtime
