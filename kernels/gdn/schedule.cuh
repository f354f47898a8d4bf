// The two schedules of a gdn kernel. Static: a block an item at capacity, or several (recurrent.cuh); one whose
// sequences have no work ends at once.
// Persistent: as many blocks as the device holds, each of which walks over the items of sequences that have work, found
// from what stands in device memory. Both run one body on an item, so they give the same bits.
#pragma once
#include "kernels/gdn/gdn.h"
#include "kernels/gdn/state_slot.cuh"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::gdn {

// A persistent block's walk. Sequence n has units_of(n) units of work and each unit `parts` parts; items count parts of
// units of sequences, in this order and without gaps, and the block takes every gridDim.x-th. Stands in shared memory, so
// that the body keeps its registers.
struct Walk {
  unsigned item, seen, before;  // next item; sequences looked at; units before the last 32 of them
  unsigned ends[32];            // of those, units up to and including each
  unsigned n, unit, part;       // the item: sequence, unit of the sequence, part of the unit
  bool more;

  __device__ void start() {
    if (threadIdx.x == 0) item = blockIdx.x, seen = before = 0;
    if (threadIdx.x < 32) ends[threadIdx.x] = 0;
  }

  // The block's next item, or false. Waits for all threads, so that they are done with the last one.
  template <class Units>
  __device__ bool next(const Args& a, unsigned parts, Units units_of) {
    __syncthreads();  // the last item is done
    if (threadIdx.x < 32) advance(static_cast<unsigned>(a.N), parts, units_of);
    __syncthreads();  // the next one is there
    return more;
  }

 private:
  template <class Units>
  __device__ void advance(unsigned N, unsigned parts, Units units_of) {
    constexpr unsigned kAll = 0xffffffffu;
    const unsigned lane = threadIdx.x, wanted = item / parts;
    unsigned first = before, from = seen, end = ends[lane];
    while (first + __shfl_sync(kAll, end, 31) <= wanted && from < N) {
      first += __shfl_sync(kAll, end, 31);
      end = from + lane < N ? units_of(from + lane) : 0;
      from += 32;
#pragma unroll
      for (int step = 1; step < 32; step *= 2) {
        const unsigned left = __shfl_up_sync(kAll, end, step);
        if (lane >= step) end += left;
      }
    }
    const unsigned past = __ballot_sync(kAll, first + end > wanted);  // sequences that end after the item
    const unsigned found = past ? __ffs(past) - 1 : 0, start = __shfl_sync(kAll, end, found == 0 ? 0 : found - 1);
    __syncwarp();  // the old values have been read
    ends[lane] = end;
    if (lane != 0) return;
    n = from - 32 + found;
    unit = wanted - first - (found == 0 ? 0 : start);
    part = item % parts;
    more = past != 0;
    item += gridDim.x;
    seen = from;
    before = first;
  }
};

// For kernels whose unit of work is a sequence: whether it has tokens or a state to write.
__device__ inline unsigned has_work(const Args& a, std::int64_t n) {
  const Rows rows = sequence_rows(a.cu_seqlens, n, a.N, a.T);
  return rows.begin < rows.end || state_slot(a, n, true).write;
}

// Enqueues one of the two forms of a kernel that has so many blocks at capacity. By itself the static one: as measured, it
// is the faster one but where a server's pool is mostly idle (docs/ladder.md#schedules).
template <class Params>
void launch_scheduled(const char* what, void (*fixed)(Params), void (*persistent)(Params), std::int64_t blocks, int threads,
                      std::size_t shared_bytes, cudaStream_t stream, const Params& params) {
  if (params.args.schedule != Schedule::persistent)
    return runtime::launch(what, fixed, blocks, threads, shared_bytes, stream, params);
  const std::int64_t resident = runtime::resident_blocks(what, persistent, threads, shared_bytes);
  runtime::launch(what, persistent, blocks < resident ? blocks : resident, threads, shared_bytes, stream, params);
}

}  // namespace deltagauge::kernels::gdn
