// A named range on the timeline of NVIDIA's profilers, from construction to destruction, on the calling thread. Nearly
// free when no profiler listens. Ranges of one thread nest.
#pragma once

namespace deltagauge::kernels::runtime {

class NvtxRange {
 public:
  explicit NvtxRange(const char* name);  // copied; UTF-8
  ~NvtxRange();
  NvtxRange(const NvtxRange&) = delete;
  NvtxRange& operator=(const NvtxRange&) = delete;
};

}  // namespace deltagauge::kernels::runtime
