// Mark: what runs until it goes out of scope, on the timeline of NVIDIA's profilers in a build with CUDA, and as a span of
// the row that its thread records. Marks of one thread nest.
#pragma once
#include <chrono>
#include <vector>

#include "reports/report.h"
#if DELTAGAUGE_HAVE_CUDA
#include "kernels/runtime/nvtx.h"
#endif

namespace deltagauge::validate {

// While it lives, the marks that its thread makes become spans, from now on in seconds. A second one on the thread takes
// over until it ends.
class Recording {
 public:
  explicit Recording(bool on);  // off: nothing is kept
  ~Recording();
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;

  std::vector<reports::Span> take();  // all marks have ended

 private:
  friend class Mark;
  double now() const;

  bool on_;
  Recording* outer_;
  std::chrono::steady_clock::time_point start_;
  std::vector<reports::Span> spans_;
  std::int64_t open_ = 0;
};

class Mark {
 public:
  explicit Mark(const char* name);
  ~Mark();
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  reports::Span* span();  // where it is recorded, else null; good until the next mark begins

 private:
  Recording* recording_;
  std::size_t index_ = 0;
#if DELTAGAUGE_HAVE_CUDA
  kernels::runtime::NvtxRange range_;
#endif
};

}  // namespace deltagauge::validate
