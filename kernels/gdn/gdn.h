// Gated delta rule, forward (docs/math.md#gdn). Plain C++: no CUDA header is needed to call it.
//   D_t = exp(g_t) S_{t-1};  u_t = beta_t (v_t - D_t k_t);  S_t = D_t + u_t k_t^T;  o_t = scale S_t q_t
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace deltagauge::kernels::gdn {

// How a kernel's blocks get their work; the bits are the same. A static grid has blocks for all items of work that the
// capacity T, N could need, and those without work end at once. A persistent one has as many blocks as the device holds at
// once, and they walk over the work that cu_seqlens and the pool say there is.
enum class Schedule : std::uint8_t {
  automatic,  // the static one; measured in docs/ladder.md#schedules
  static_grid,
  persistent,
};
std::string_view name(Schedule schedule);  // "automatic", "static", "persistent"

// Of Args.g before the recurrence, per head, docs/math.md#gate: y = g + dt_bias, a = exp(A_log)
enum class Transform : std::uint8_t {
  none,      // g is the log decay
  softplus,  // -a softplus(y)
  bounded,   // lower_bound sigmoid(a y)
};

// Device pointers unless said otherwise. Rows are packed tokens; sequence n owns rows [cu_seqlens[n], cu_seqlens[n+1]).
// Rows at and past cu_seqlens[N] are neither read nor written.
struct Args {
  const void* q = nullptr;              // [T, HK, K] io
  const void* k = nullptr;              // [T, HK, K] io
  const void* v = nullptr;              // [T, HV, V] io
  const void* g = nullptr;              // [T, HV] gate_dtype; natural log of the decay, <= 0, -inf allowed; see transform
  const void* beta = nullptr;           // [T, HV] beta_dtype
  const float* A_log = nullptr;         // [HV] of a transform, or null: a = 1
  const float* dt_bias = nullptr;       // [HV] of a transform
  const void* initial_state = nullptr;  // [N, HV, V, K] state, or null: zero; of a pool see below
  const std::int32_t* cu_seqlens = nullptr;  // [N + 1], or null: N sequences of T / N rows each
  void* o = nullptr;                         // [T, HV, V] io; what passes io's largest value is stored as infinity
  void* final_state = nullptr;               // [N, HV, V, K] state, or null: not wanted; may be initial_state itself
  void* workspace = nullptr;                 // workspace_bytes(args) bytes, 256-byte aligned
  // A state pool (docs/math.md#state-pool): initial_state and final_state are one memory of `slots` slots [HV, V, K], a
  // slot_stride apart. Sequence n advances slot state_indices[n] in place; positive indices are unique. One that is not in
  // [1, slots) stands for no slot: rows of o are zero and nothing else is touched.
  const std::int32_t* state_indices = nullptr;      // [N], or null: no pool
  const std::uint8_t* has_initial_state = nullptr;  // [N], 0: starts from zero, the slot is not read; null: all 1
  std::int64_t slots = 0;                           // 0 without a pool, else at least 2
  std::int64_t slot_stride = 0;                     // elements, at least HV V K; a multiple of Variant::alignment in bytes
  std::int64_t T = 0, N = 0, HK = 0, HV = 0, K = 0, V = 0;
  DType io = DType::bf16, state = DType::f32, gate_dtype = DType::f32, beta_dtype = DType::f32;
  float scale = 0;      // of q, as applied (no default here)
  bool l2norm = false;  // normalise q and k rows first: x / sqrt(sum x^2 + 1e-6)
  Transform transform = Transform::none;
  float lower_bound = -5;  // bounded only: finite, <= 0
  bool fast_math = false;
  Schedule schedule = Schedule::automatic;
  // Debug taps, all optional, f32. C = Variant::chunk rows a chunk, chunks counted per sequence, chunk_offset[n] = sum of
  // ceil(length / C) over the sequences before n; NC chunks in all.
  float* tap_Ainv = nullptr;   // [NC, HV, C, C]
  float* tap_S = nullptr;      // [NC, HV, V, K] state before the chunk
  float* tap_v_new = nullptr;  // [T, HV, V]
};

// Up to where a quantity of docs/range.md (g sum_g h0 v beta) was safe with one io, on all cases and in both math modes.
struct Limit {
  std::string_view quantity;
  DType io;
  double largest;  // magnitude of every element
};

struct Variant {
  std::string_view name;     // "recurrent", "chunk_sm80"
  std::string_view staging;  // the emulator's name for where it rounds
  std::int64_t chunk;        // tokens of a chunk, 1: token by token
  std::string_view summary;
  std::string_view io;          // dtypes of q k v o it takes, space separated
  std::string_view head_sizes;  // K and V it takes, in words
  bool (*fits)(std::int64_t K, std::int64_t V);
  std::size_t alignment;  // of q k v o and the states, in bytes; 0: that of their elements
  bool persistent;        // whether it has a persistent schedule beside the static one
  bool taps;              // whether it gives tap_Ainv, tap_S and tap_v_new
  int sm = 0;             // the one compute capability, times ten, that it runs on; 0: any from 80
  // Tokens of a segment: the bits of a longer sequence depend on where a call starts it. 0: no segments.
  std::int64_t segment = 0;
  // A quantity without one was safe to the end of the search.
  std::span<const Limit> limits{};
};
std::span<const Variant> variants();

const Variant& find_variant(std::string_view name);  // throws Error naming the known ones

// The variant "auto" stands for in the calls below: where sequences are on average at least one chunk of 64 long, on sm_90
// chunk_sm90_segments for few heads and long sequences, chunk_sm90_fused for many (sequence, head) pairs, else chunk_sm90;
// elsewhere chunk_sm80; when they support args; else recurrent. Looks at sizes and dtypes only.
// sm: compute capability of the device times ten, 0: any.
std::string_view pick(const Args& args, int sm = 0);
// Why variant cannot run args (expected and got), or nothing. Looks at sizes and dtypes only, never at pointers.
std::optional<std::string> unsupported(std::string_view variant, const Args& args);
// Why a quantity of that magnitude is past a limit of variant (expected and got), or nothing.
std::optional<std::string> beyond_limit(std::string_view variant, DType io, std::string_view quantity, double magnitude);
// Why variant does not run on a device of compute capability sm / 10 in this build, or nothing.
std::optional<std::string> unsupported_device(std::string_view variant, int sm);
// Bytes of args.workspace that variant needs; depends on sizes and dtypes only. Throws Error when
// it is unsupported.
std::size_t workspace_bytes(std::string_view variant, const Args& args);
// Checks every argument (throws Error with expected and got), then launches on stream (a cudaStream_t). Never allocates,
// never synchronises.
void fwd(std::string_view variant, const Args& args, void* stream);

}  // namespace deltagauge::kernels::gdn
