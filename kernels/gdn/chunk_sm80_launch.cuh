// gdn.chunk_sm80: the two launches for one io type and head size.
#pragma once
#include "kernels/gdn/chunk_sm80_prepare.cuh"
#include "kernels/gdn/chunk_sm80_scan.cuh"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gdn {
namespace chunk_sm80 {

struct Limits {
  int sms = 0, shared_bytes = 0;  // multiprocessors; shared memory a block may ask for
};
inline Limits limits() {
  Limits limits;
  int device = 0;
  runtime::check(cudaGetDevice(&device), "cudaGetDevice");
  runtime::check(cudaDeviceGetAttribute(&limits.sms, cudaDevAttrMultiProcessorCount, device), "cudaDeviceGetAttribute");
  runtime::check(cudaDeviceGetAttribute(&limits.shared_bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
                 "cudaDeviceGetAttribute");
  return limits;
}

template <class Io, class Shape>
void launch_scan(const Params& p, cudaStream_t stream) {
  const std::int64_t blocks = p.args.N * p.args.HV * (Shape::D / (16 * Shape::warps));
  launch_scheduled("gdn.chunk_sm80 scan", scan<Io, Shape, false>, scan<Io, Shape, true>, blocks, 32 * Shape::warps,
                   Shape::stages * sizeof(Stage<Io, Shape>), stream, p);
}

// The fewer (sequence, head) pairs there are, the fewer V rows a block takes, so that all multiprocessors have one.
template <class Io, int kD, bool kSplit>
void launch_scan_of(const Params& p, cudaStream_t stream) {
  constexpr int kWarps = kD / 16;
  const Limits device = limits();
  const std::int64_t pairs = p.args.N * p.args.HV;
  if constexpr (kD == 128) {
    using Wide = Stage<Io, ScanShape<kD, kWarps, 2, kSplit>>;
    if (2 * sizeof(Wide) > static_cast<std::size_t>(device.shared_bytes))
      return launch_scan<Io, ScanShape<kD, kWarps, 1, kSplit>>(p, stream);
  }
  if (2 * pairs <= device.sms) return launch_scan<Io, ScanShape<kD, kWarps / 2, 2, kSplit>>(p, stream);
  launch_scan<Io, ScanShape<kD, kWarps, 2, kSplit>>(p, stream);
}

}  // namespace chunk_sm80

template <class Io, int kD>
void launch_chunk_sm80_as(const chunk_sm80::Params& p, cudaStream_t stream) {
  using namespace chunk_sm80;
  launch_scheduled("gdn.chunk_sm80 prepare", prepare<Io, kD, false>, prepare<Io, kD, true>, slots(p.args) * p.args.HK,
                   kPrepareThreads, sizeof(PrepareSmem<Io, kD>), stream, p);
  if (p.split) return launch_scan_of<Io, kD, true>(p, stream);
  launch_scan_of<Io, kD, false>(p, stream);
}

}  // namespace deltagauge::kernels::gdn
