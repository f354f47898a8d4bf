// 16-bit floating-point formats by their bits, and the roundings kernels apply. Everything here is exact integer work:
// no hardware conversion and no double rounding. Tested over all 2^16 patterns and all ties in half_test.cc.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>

namespace deltagauge {

struct Bf16 {  // 1 sign, 8 exponent, 7 fraction bits: range of f32, unit roundoff 2^-8
  std::uint16_t bits = 0;
  friend constexpr bool operator==(Bf16, Bf16) = default;
};
struct F16 {  // IEEE binary16: 1 sign, 5 exponent, 10 fraction bits, largest finite 65504, unit roundoff 2^-11
  std::uint16_t bits = 0;
  friend constexpr bool operator==(F16, F16) = default;
};

// Encodes x as sign | kExp exponent bits | kMan fraction bits, round to nearest, ties to even; overflow gives infinity,
// NaN a quiet NaN that keeps the sign.
template <int kExp, int kMan>
constexpr std::uint16_t encode16(double x) {
  const auto b = std::bit_cast<std::uint64_t>(x);
  const auto sign = static_cast<std::uint16_t>((b >> 63) << 15);
  constexpr std::uint16_t kInf = ((1u << kExp) - 1) << kMan;
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  const int field = static_cast<int>((b >> 52) & 0x7ff);
  const std::uint64_t fraction = b & 0xfffffffffffffull;
  if (field == 0x7ff) return sign | kInf | (fraction ? 1u << (kMan - 1) : 0u);
  if (field == 0) return sign;  // f64 subnormals are far below half of the smallest 16-bit subnormal
  const std::uint64_t significand = fraction | (1ull << 52);
  int exponent = field - 1023 + kBias;                              // biased in the target
  const int drop = 52 - kMan + (exponent >= 1 ? 0 : 1 - exponent);  // bits that fall off
  if (drop > 53) return sign;
  std::uint64_t kept = significand >> drop;
  const std::uint64_t rest = significand & ((1ull << drop) - 1), half = 1ull << (drop - 1);
  if (rest > half || (rest == half && (kept & 1))) ++kept;
  // kept carries its implicit bit, so adding (exponent - 1) in the exponent field also handles carry and subnormals
  const std::uint64_t word = exponent >= 1 ? kept + (static_cast<std::uint64_t>(exponent - 1) << kMan) : kept;
  return sign | static_cast<std::uint16_t>(word >= kInf ? kInf : word);
}

template <int kExp, int kMan>
constexpr double decode16(std::uint16_t h) {
  constexpr int kBias = (1 << (kExp - 1)) - 1;
  const int field = (h >> kMan) & ((1 << kExp) - 1), fraction = h & ((1 << kMan) - 1);
  const std::uint64_t sign = static_cast<std::uint64_t>(h >> 15) << 63;
  if (field == (1 << kExp) - 1)
    return std::bit_cast<double>(sign | (0x7ffull << 52) | (static_cast<std::uint64_t>(fraction) << (52 - kMan)));
  if (field == 0) {
    const double ulp = std::bit_cast<double>(static_cast<std::uint64_t>(1 - kBias - kMan + 1023) << 52);
    const double magnitude = fraction * ulp;
    return std::bit_cast<double>(std::bit_cast<std::uint64_t>(magnitude) | sign);
  }
  return std::bit_cast<double>(sign | (static_cast<std::uint64_t>(field - kBias + 1023) << 52) |
                               (static_cast<std::uint64_t>(fraction) << (52 - kMan)));
}

constexpr Bf16 to_bf16(double x) { return {encode16<8, 7>(x)}; }
constexpr F16 to_f16(double x) { return {encode16<5, 10>(x)}; }
constexpr double to_f64(Bf16 h) { return decode16<8, 7>(h.bits); }
constexpr double to_f64(F16 h) { return decode16<5, 10>(h.bits); }

// Fast paths for emulators: f32 in, the same value rounded to the format, as f32. Equal to to_f64(to_bf16(x)).
constexpr float round_bf16(float x) {
  auto b = std::bit_cast<std::uint32_t>(x);
  if ((b & 0x7f800000u) == 0x7f800000u) return std::bit_cast<float>((b & 0x7fffffu) ? b | 0x400000u : b);
  b += 0x7fffu + ((b >> 16) & 1u);
  return std::bit_cast<float>(b & 0xffff0000u);
}
constexpr float round_f16(float x) {
  const auto b = std::bit_cast<std::uint32_t>(x);
  const int field = static_cast<int>((b >> 23) & 0xff);
  if (field >= 113 && field < 142) {  // normal in f16 and below 2^15: round at bit 13
    const std::uint32_t r = b + 0xfffu + ((b >> 13) & 1u);
    return std::bit_cast<float>(r & ~0x1fffu);
  }
  return static_cast<float>(decode16<5, 10>(encode16<5, 10>(x)));
}
// tf32: f32 with 10 fraction bits. The tensor core truncates the low 13 bits of what it is handed (kTruncate); a kernel
// that calls cvt.rna.tf32 rounds to nearest, ties away (kNearestAway).
constexpr float truncate_tf32(float x) { return std::bit_cast<float>(std::bit_cast<std::uint32_t>(x) & ~0x1fffu); }
constexpr float round_tf32(float x) {
  const auto b = std::bit_cast<std::uint32_t>(x);
  if ((b & 0x7f800000u) == 0x7f800000u) return x;
  return std::bit_cast<float>((b + 0x1000u) & ~0x1fffu);
}
// Cutting off m 2^e (1 <= m < 2) after 10 bits loses 2^-11 / m of it on average: 0.7213 2^-11 over log-uniform m, whose mean
// of 1 / m is 1 / (2 ln 2). Made larger by that much first, values are cut off with a mean error of zero, and an rms error
// that is 6 % above rounding to nearest, for one product in place of a rounding. A value that is a tf32 number stays what it
// is: it grows by m 0.7213 2^-11 < 2^-10, less than a step, also where it is subnormal.
inline constexpr float kTf32Up = 1 + 0.7213f / 2048;
// As a kernel that multiplies by kTf32Up and leaves the cutting to the tensor core. NaN stays NaN (the product is quiet,
// which sets a bit that is kept); finite values past the largest tf32 number may become infinite.
constexpr float cut_tf32(float x) { return truncate_tf32(x * kTf32Up); }

}  // namespace deltagauge
