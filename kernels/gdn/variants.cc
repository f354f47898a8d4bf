// The one list of what is built for gdn, and what each variant takes. Plain C++, so that it can be read without CUDA.
#include <sstream>
#include <string>

#include "kernels/gdn/gdn.h"
#include "kernels/gdn/segment.h"
#include "kernels/runtime/arguments.h"

namespace deltagauge::kernels::gdn {
namespace {

constexpr std::int64_t kMaxHeadSize = 256;
constexpr std::int64_t kMaxPairs = (std::int64_t{1} << 31) / 8 - 1;  // 8 blocks of 32 rows to a pair at V = 256

constexpr bool fits_any(std::int64_t K, std::int64_t V) {
  return K >= 1 && K <= kMaxHeadSize && V >= 1 && V <= kMaxHeadSize;
}
constexpr bool fits_chunk(std::int64_t K, std::int64_t V) { return K == V && (K == 64 || K == 128); }
constexpr bool fits_128(std::int64_t K, std::int64_t V) { return K == 128 && V == 128; }

#ifdef DELTAGAUGE_SM90A
constexpr bool kBuiltForSm90a = true;
#else
constexpr bool kBuiltForSm90a = false;
#endif

// The smallest largest_safe over the cases of reports/recorded/h200/frontier{,_128}.json; validate/backends/cuda_test.cc
// holds them together. Where a sum leaves f32: v, and h0 with bf16. Where, with f16 and one key, the state's own rounding
// error passes 65504 in outputs that are right near zero: h0 with f16. Gates have no limit, v of f16 ends at 65504, beta was
// searched to 2.
constexpr Limit kRecurrentLimits[] = {{"v", DType::bf16, 2.5587509111438167e+38},
                                      {"h0", DType::bf16, 1.4351667733905652e+38},
                                      {"h0", DType::f16, 14969485656064}};
constexpr Limit kChunkLimits[] = {
    {"v", DType::bf16, 2.7980229028862875e+38}, {"h0", DType::bf16, 1.2328547067844927e+38}, {"h0", DType::f16, 143982512}};
constexpr Limit kChunk90Limits[] = {
    {"v", DType::bf16, 2.7980229028862875e+38}, {"h0", DType::bf16, 1.2328547067844927e+38}, {"h0", DType::f16, 440530976}};
constexpr Limit kFusedLimits[] = {
    {"v", DType::bf16, 2.6119265213462865e+38}, {"h0", DType::bf16, 1.4721175714426419e+38}, {"h0", DType::f16, 1335360896}};
constexpr Limit kSplitLimits[] = {{"v", DType::bf16, 2.7980229028862875e+38},
                                  {"h0", DType::bf16, 1.2308092257759644e+38},
                                  {"h0", DType::f16, 274596036608}};

constexpr Variant kVariants[] = {
    {.name = "recurrent",
     .staging = "recurrent.f32",
     .chunk = 1,
     .summary = "token by token in FP32, any head size",
     .io = "f32 bf16 f16",
     .head_sizes = "K and V in [1, 256]",
     .fits = fits_any,
     .alignment = 0,
     .persistent = true,
     .taps = false,
     .limits = kRecurrentLimits},
    {.name = "chunk_sm80",
     .staging = "chunk_sm80.plain",
     .chunk = 64,
     .summary = "chunks of 64 tokens on mma.sync, sm_80 and later",
     .io = "bf16 f16",
     .head_sizes = "K = V, 64 or 128",
     .fits = fits_chunk,
     .alignment = 16,
     .persistent = true,
     .taps = true,
     .limits = kChunkLimits},
    {.name = "chunk_sm90",
     .staging = "chunk_sm90.plain",
     .chunk = 64,
     .summary = "chunks of 64 tokens on wgmma, sm_90 only",
     .io = "bf16 f16",
     .head_sizes = "K = V, 64 or 128",
     .fits = fits_chunk,
     .alignment = 16,
     .persistent = false,
     .taps = true,
     .sm = 90,
     .limits = kChunk90Limits},
    {.name = "chunk_sm90_fused",
     .staging = "chunk_sm90.short",
     .chunk = 32,
     .summary = "chunks of 32 tokens on wgmma in one kernel without a workspace, for many (sequence, head) pairs",
     .io = "bf16 f16",
     .head_sizes = "K = V = 128",
     .fits = fits_128,
     .alignment = 16,
     .persistent = false,
     .taps = true,
     .sm = 90,
     .limits = kFusedLimits},
    {.name = "chunk_sm90_segments",
     .staging = "chunk_sm90.plain",
     .chunk = 64,
     .summary = "as chunk_sm90, segments of 4096 tokens side by side: few heads, long sequences",
     .io = "bf16 f16",
     .head_sizes = "K = V, 64 or 128",
     .fits = fits_chunk,
     .alignment = 16,
     .persistent = false,
     .taps = true,
     .sm = 90,
     .segment = kSegment,
     .limits = kChunk90Limits},
    {.name = "chunk_sm80_split",
     .staging = "chunk_sm80.split",
     .chunk = 64,
     .summary = "as chunk_sm80, every operand but q and k as hi + lo: a smaller error, more time",
     .io = "bf16 f16",
     .head_sizes = "K = V, 64 or 128",
     .fits = fits_chunk,
     .alignment = 16,
     .persistent = true,
     .taps = true,
     .limits = kSplitLimits},
};

}  // namespace

std::string_view name(Schedule schedule) {
  constexpr std::string_view kNames[] = {"automatic", "static", "persistent"};
  return kNames[static_cast<std::size_t>(schedule)];
}

std::span<const Variant> variants() { return kVariants; }

const Variant& find_variant(std::string_view name) {
  std::string known;
  for (const Variant& v : kVariants) {
    if (v.name == name) return v;
    known += " " + std::string(v.name);
  }
  fail("gdn variant: expected one of", known, " auto, got '", name, "'");
}

std::string_view pick(const Args& args, int sm) {
  if (args.T < 64 * args.N) return "recurrent";
  const auto usable = [&](std::string_view variant) {
    return !unsupported_device(variant, sm) && !unsupported(variant, args);
  };
  // As measured on 132 multiprocessors (docs/performance.md): segments where states of 64 V rows leave three quarters of
  // them idle, one kernel where a block a pair keeps three fifths of them busy.
  const std::int64_t pairs = args.N * args.HV;
  if (pairs <= 16 && args.T >= 4 * kSegment * args.N && usable("chunk_sm90_segments")) return "chunk_sm90_segments";
  if (pairs >= 80 && usable("chunk_sm90_fused")) return "chunk_sm90_fused";
  if (usable("chunk_sm90")) return "chunk_sm90";
  return unsupported("chunk_sm80", args) ? "recurrent" : "chunk_sm80";
}

std::optional<std::string> unsupported_device(std::string_view variant, int sm) {
  const Variant& v = find_variant(variant);
  if (v.sm == 0) return std::nullopt;
  if (v.sm != sm) return "device: expected sm_" + std::to_string(v.sm) + ", got sm_" + std::to_string(sm);
  if (!kBuiltForSm90a) return "device: expected a build for sm_90a, got one without (DELTAGAUGE_CUDA_ARCHS)";
  return std::nullopt;
}

std::optional<std::string> beyond_limit(std::string_view variant, DType io, std::string_view quantity, double magnitude) {
  for (const Limit& limit : find_variant(variant).limits) {
    if (limit.quantity != quantity || limit.io != io || !(magnitude > limit.largest)) continue;
    std::ostringstream text;
    text.precision(9);
    text << quantity << ": expected a magnitude of at most " << limit.largest << " with io " << name(io) << ", got "
         << magnitude;
    return text.str();
  }
  return std::nullopt;
}

std::optional<std::string> unsupported(std::string_view variant, const Args& args) {
  const Variant& v = find_variant(variant == "auto" ? pick(args) : variant);
  if (const auto reason = runtime::not_among("io", args.io, v.io)) return reason;
  if (const auto reason = runtime::not_among("state", args.state, "f32 bf16")) return reason;
  if (const auto reason = runtime::not_among("gate_dtype", args.gate_dtype, "f32 bf16 f16")) return reason;
  if (const auto reason = runtime::not_among("beta_dtype", args.beta_dtype, "f32 bf16 f16")) return reason;
  if (!v.fits(args.K, args.V))
    return "head sizes: expected " + std::string(v.head_sizes) + ", got K = " + std::to_string(args.K) +
           ", V = " + std::to_string(args.V);
  if (args.schedule == Schedule::persistent && !v.persistent)
    return "schedule: expected automatic or static, got persistent";
  if (const auto bytes = args.slot_stride * static_cast<std::int64_t>(size_of(args.state)),
      alignment = static_cast<std::int64_t>(v.alignment);
      alignment && bytes % alignment != 0)
    return "slot_stride: expected a multiple of " + std::to_string(alignment) + " bytes, got " + std::to_string(bytes);
  if (args.HV > 0 && args.N > kMaxPairs / args.HV)
    return "N * HV: expected at most " + std::to_string(kMaxPairs) + ", got N = " + std::to_string(args.N) +
           ", HV = " + std::to_string(args.HV);
  return std::nullopt;
}

}  // namespace deltagauge::kernels::gdn
