#include "core/dtype.h"

#include <cmath>
#include <limits>

#include "core/error.h"

namespace deltagauge {
namespace {

struct Named {
  DType dtype;
  std::string_view name;
};
constexpr Named kNames[] = {{DType::f64, "f64"}, {DType::f32, "f32"}, {DType::bf16, "bf16"},   {DType::f16, "f16"},
                            {DType::i32, "i32"}, {DType::i64, "i64"}, {DType::boolean, "bool"}};

// The position of x in the format's grid: consecutive values are one apart, zero is 0, negatives mirror.
template <class Bits, class Signed>
std::int64_t grid_position(Bits bits) {
  constexpr Bits kSign = Bits{1} << (8 * sizeof(Bits) - 1);
  const auto magnitude = static_cast<Signed>(bits & ~kSign);
  return (bits & kSign) ? -static_cast<std::int64_t>(magnitude) : static_cast<std::int64_t>(magnitude);
}

std::int64_t position(DType dtype, double x) {
  switch (dtype) {
    case DType::f64:
      return grid_position<std::uint64_t, std::int64_t>(std::bit_cast<std::uint64_t>(x));
    case DType::f32:
      return grid_position<std::uint32_t, std::int32_t>(std::bit_cast<std::uint32_t>(static_cast<float>(x)));
    case DType::bf16:
      return grid_position<std::uint16_t, std::int32_t>(to_bf16(x).bits);
    case DType::f16:
      return grid_position<std::uint16_t, std::int32_t>(to_f16(x).bits);
    default:
      return static_cast<std::int64_t>(x);
  }
}

}  // namespace

std::string_view name(DType dtype) {
  for (const Named& n : kNames)
    if (n.dtype == dtype) return n.name;
  return "?";
}

DType parse_dtype(std::string_view text) {
  for (const Named& n : kNames)
    if (n.name == text) return n.dtype;
  fail("dtype: expected one of f64 f32 bf16 f16 i32 i64 bool, got '", text, "'");
}

double round_to(DType dtype, double x) {
  switch (dtype) {
    case DType::f64:
      return x;
    case DType::f32:
      return static_cast<float>(x);
    case DType::bf16:
      return to_f64(to_bf16(x));
    case DType::f16:
      return to_f64(to_f16(x));
    default:
      return std::nearbyint(x);
  }
}

std::int64_t ulp_distance(DType dtype, double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b) ? 0 : std::numeric_limits<std::int64_t>::max();
  const std::int64_t x = position(dtype, a), y = position(dtype, b);
  std::int64_t distance = 0;
  if (__builtin_sub_overflow(x, y, &distance)) return std::numeric_limits<std::int64_t>::max();
  return distance < 0 ? -distance : distance;
}

double largest_finite(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::max();
    case DType::f32:
      return std::numeric_limits<float>::max();
    case DType::bf16:
      return 0x1.fep127;
    case DType::f16:
      return 65504;
    default:
      fail("largest_finite: expected a floating dtype, got ", name(dtype));
  }
}
double smallest_normal(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::min();
    case DType::f32:
    case DType::bf16:
      return 0x1p-126;
    case DType::f16:
      return 0x1p-14;
    default:
      fail("smallest_normal: expected a floating dtype, got ", name(dtype));
  }
}
double smallest_subnormal(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return std::numeric_limits<double>::denorm_min();
    case DType::f32:
      return 0x1p-149;
    case DType::bf16:
      return 0x1p-133;
    case DType::f16:
      return 0x1p-24;
    default:
      fail("smallest_subnormal: expected a floating dtype, got ", name(dtype));
  }
}

}  // namespace deltagauge
