// Mark: what a job does, on the timeline of NVIDIA's profilers until it goes out of scope; nothing in a build without CUDA.
#pragma once
#if DELTAGAUGE_HAVE_CUDA
#include "kernels/runtime/nvtx.h"
#endif

namespace deltagauge::validate {

#if DELTAGAUGE_HAVE_CUDA
using Mark = kernels::runtime::NvtxRange;
#else
struct Mark {
  explicit Mark(const char*) {}
};
#endif

}  // namespace deltagauge::validate
