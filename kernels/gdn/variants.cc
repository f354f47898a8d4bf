// The one list of what is built for gdn, and what each variant takes. Plain C++, so that it can be read without CUDA.
#include <string>

#include "kernels/gdn/gdn.h"
#include "kernels/runtime/arguments.h"

namespace deltagauge::kernels::gdn {
namespace {

constexpr std::int64_t kMaxHeadSize = 256;
constexpr std::int64_t kMaxPairs = (std::int64_t{1} << 31) / 8 - 1;  // 8 blocks of 32 rows to a pair at V = 256

constexpr bool fits_any(std::int64_t K, std::int64_t V) {
  return K >= 1 && K <= kMaxHeadSize && V >= 1 && V <= kMaxHeadSize;
}
constexpr bool fits_chunk(std::int64_t K, std::int64_t V) { return K == V && (K == 64 || K == 128); }

#ifdef DELTAGAUGE_SM90A
constexpr bool kBuiltForSm90a = true;
#else
constexpr bool kBuiltForSm90a = false;
#endif

constexpr Variant kVariants[] = {
    {.name = "recurrent",
     .staging = "recurrent.f32",
     .summary = "token by token in FP32, any head size",
     .io = "f32 bf16 f16",
     .head_sizes = "K and V in [1, 256]",
     .fits = fits_any,
     .alignment = 0,
     .taps = false},
    {.name = "chunk_sm80",
     .staging = "chunk_sm80.plain",
     .summary = "chunks of 64 tokens on mma.sync, sm_80 and later",
     .io = "bf16 f16",
     .head_sizes = "K = V, 64 or 128",
     .fits = fits_chunk,
     .alignment = 16,
     .taps = true},
    {.name = "chunk_sm90",
     .staging = "chunk_sm90.plain",
     .summary = "chunks of 64 tokens on wgmma, sm_90 only",
     .io = "bf16 f16",
     .head_sizes = "K = V, 64 or 128",
     .fits = fits_chunk,
     .alignment = 16,
     .taps = true,
     .sm = 90},
    {.name = "chunk_sm80_split",
     .staging = "chunk_sm80.split",
     .summary = "as chunk_sm80, every operand but q and k as hi + lo: a smaller error, more time",
     .io = "bf16 f16",
     .head_sizes = "K = V, 64 or 128",
     .fits = fits_chunk,
     .alignment = 16,
     .taps = true},
};

}  // namespace

std::span<const Variant> variants() { return kVariants; }

const Variant& find_variant(std::string_view name) {
  std::string known;
  for (const Variant& v : kVariants) {
    if (v.name == name) return v;
    known += " " + std::string(v.name);
  }
  fail("gdn variant: expected one of", known, " auto, got '", name, "'");
}

std::string_view pick(const Args& args) {
  constexpr std::string_view kChunk = "chunk_sm80";  // chunk_sm90 is not faster yet (docs/performance.md)
  return args.T >= 64 * args.N && !unsupported(kChunk, args) ? kChunk : "recurrent";
}

std::optional<std::string> unsupported_device(std::string_view variant, int sm) {
  const Variant& v = find_variant(variant);
  if (v.sm == 0) return std::nullopt;
  if (v.sm != sm) return "device: expected sm_" + std::to_string(v.sm) + ", got sm_" + std::to_string(sm);
  if (!kBuiltForSm90a) return "device: expected a build for sm_90a, got one without (DELTAGAUGE_CUDA_ARCHS)";
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
  if (args.HV > 0 && args.N > kMaxPairs / args.HV)
    return "N * HV: expected at most " + std::to_string(kMaxPairs) + ", got N = " + std::to_string(args.N) +
           ", HV = " + std::to_string(args.HV);
  return std::nullopt;
}

}  // namespace deltagauge::kernels::gdn
