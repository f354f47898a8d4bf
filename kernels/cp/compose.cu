// A block takes kRows rows of the state of one head (kernels/device/fold.cuh).
//   publish   grid: x = (slot * HV + h) * (blocks of V rows + blocks of K rows) + block
//   compose   grid: x = (segment * HV + h) * blocks of V rows + block. A segment that follows on in the span is left to the
//             block of the one that it goes on from.
// shared: two states [K, kRows], the one that is read and the one that is written.
#include "kernels/cp/compose.h"

#include <string_view>

#include "kernels/device/fold.cuh"
#include "kernels/runtime/arguments.h"
#include "kernels/runtime/launch.cuh"

namespace deltagauge::kernels::cp {
namespace {

constexpr int kThreads = 128, kRows = 8;
using Column = fold::Column<kRows>;
using Place = fold::Place<kRows>;

__host__ __device__ constexpr std::int64_t blocks_of(std::int64_t rows) { return (rows + kRows - 1) / kRows; }

// Where a segment starts from.
__device__ bool follows(const ComposeArgs& a, std::int64_t s) { return s > 0 && a.source[s] == a.fragments + 1; }
__device__ bool folds(const ComposeArgs& a, std::int64_t s) { return a.source[s] >= 0 && a.source[s] < a.fragments; }

// A state or map of (n, h) in a tensor [.., HV, rows, K].
template <class T>
__device__ T* matrix(const ComposeArgs& a, T* tensor, std::int64_t n, std::int64_t h, std::int64_t rows) {
  return tensor == nullptr ? nullptr : tensor + (n * a.HV + h) * rows * a.K;
}

__global__ void __launch_bounds__(kThreads) publish_kernel(const __grid_constant__ ComposeArgs a) {
  extern __shared__ Column shared[];
  const std::int64_t bias_blocks = blocks_of(a.V), blocks = bias_blocks + blocks_of(a.K);
  const std::int64_t block = blockIdx.x % blocks, h = blockIdx.x / blocks % a.HV, slot = blockIdx.x / blocks / a.HV;
  const std::int64_t s = a.published[slot];
  if (s < 0 || s >= a.segments) return;
  float* own = matrix(a, a.own, slot, h, a.V + a.K);
  const float* transition = matrix(a, a.transition, s, h, a.K);
  if (block >= bias_blocks) {
    const Place at(block - bias_blocks, a.K, a.K);
    for (int c = threadIdx.x; c < at.K; c += kThreads) at.store(at.load(transition, c), own + a.V * a.K, c);
    return;
  }
  const Place at(block, a.V, a.K);
  const float* bias = matrix(a, a.bias, s, h, a.V);
  if (follows(a, s) || folds(a, s)) {
    for (int c = threadIdx.x; c < at.K; c += kThreads) at.store(at.load(bias, c), own, c);
    return;
  }
  const float* initial = matrix(a, a.initial, s, h, a.V);
  for (int c = threadIdx.x; c < at.K; c += kThreads) shared[c] = at.load(initial, c);
  __syncthreads();
  for (int c = threadIdx.x; c < at.K; c += kThreads)
    at.store(fold::merged(at.K, shared, at.load(bias, c), transition, c), own, c);
}

__global__ void __launch_bounds__(kThreads) compose_kernel(const __grid_constant__ ComposeArgs a) {
  extern __shared__ Column shared[];
  Column *now = shared, *next = shared + a.K;
  const std::int64_t blocks = blocks_of(a.V);
  const std::int64_t block = blockIdx.x % blocks, h = blockIdx.x / blocks % a.HV;
  std::int64_t s = blockIdx.x / blocks / a.HV;
  if (follows(a, s)) return;
  const Place at(block, a.V, a.K);
  const auto step = [&](const float* bias, const float* transition, float* entry) {
    __syncthreads();  // `now` is there, and `next` has been read
    for (int c = threadIdx.x; c < at.K; c += kThreads) {
      next[c] = fold::merged(at.K, now, at.load(bias, c), transition, c);
      if (entry != nullptr) at.store(next[c], entry, c);
    }
    Column* read = now;
    now = next;
    next = read;
  };

  const std::int64_t width = a.world * a.slots;
  const std::int32_t* order = folds(a, s) ? a.fold + a.source[s] * width : nullptr;
  const auto slot = [&](std::int64_t i) -> const float* {  // null: the fold is over
    if (order == nullptr || i >= width || order[i] < 0 || order[i] >= width) return nullptr;
    return matrix(a, a.gathered, order[i], h, a.V + a.K);
  };
  const float* start = order != nullptr ? slot(0) : matrix(a, a.initial, s, h, a.V);
  for (int c = threadIdx.x; c < at.K; c += kThreads) now[c] = at.load(start, c);
  for (std::int64_t i = 1; slot(i) != nullptr; ++i) step(slot(i), slot(i) + a.V * a.K, nullptr);
  for (int c = threadIdx.x; c < at.K; c += kThreads) at.store(now[c], matrix(a, a.entry, s, h, a.V), c);
  for (; s + 1 < a.segments && follows(a, s + 1); ++s)
    step(matrix(a, a.bias, s, h, a.V), matrix(a, a.transition, s, h, a.K), matrix(a, a.entry, s + 1, h, a.V));
}

void check_sizes(std::string_view op, const ComposeArgs& a) {
  const struct {
    std::string_view name;
    std::int64_t value, least;
  } sizes[] = {{"segments", a.segments, 0},
               {"fragments", a.fragments, 0},
               {"slots", a.slots, 0},
               {"world", a.world, 1},
               {"HV", a.HV, 1},
               {"K", a.K, 1},
               {"V", a.V, 1}};
  for (const auto& size : sizes) runtime::require_size(op, size.name, size.value, size.least);
  if (a.segments == 0) return;
  runtime::require_pointer(op, "source", a.source, sizeof(std::int32_t));
  runtime::require_pointer(op, "bias", a.bias, sizeof(float));
  runtime::require_pointer(op, "transition", a.transition, sizeof(float));
  runtime::require_aligned(op, "initial", a.initial, sizeof(float));
}

std::size_t shared_bytes(const ComposeArgs& a, int states) {
  return static_cast<std::size_t>(states) * static_cast<std::size_t>(a.K) * sizeof(Column);
}

}  // namespace

void publish(const ComposeArgs& args, void* stream) {
  constexpr std::string_view kOp = "cp.publish";
  check_sizes(kOp, args);
  if (args.segments == 0 || args.slots == 0) return;
  runtime::require_pointer(kOp, "published", args.published, sizeof(std::int32_t));
  runtime::require_pointer(kOp, "own", args.own, sizeof(float));
  runtime::launch("cp.publish", publish_kernel, args.slots * args.HV * (blocks_of(args.V) + blocks_of(args.K)), kThreads,
                  shared_bytes(args, 1), static_cast<cudaStream_t>(stream), args);
}

void compose(const ComposeArgs& args, void* stream) {
  constexpr std::string_view kOp = "cp.compose";
  check_sizes(kOp, args);
  if (args.segments == 0) return;
  if (args.fragments > 0 && args.slots > 0) {
    runtime::require_pointer(kOp, "fold", args.fold, sizeof(std::int32_t));
    runtime::require_pointer(kOp, "gathered", args.gathered, sizeof(float));
  }
  runtime::require_pointer(kOp, "entry", args.entry, sizeof(float));
  runtime::launch("cp.compose", compose_kernel, args.segments * args.HV * blocks_of(args.V), kThreads, shared_bytes(args, 2),
                  static_cast<cudaStream_t>(stream), args);
}

}  // namespace deltagauge::kernels::cp
