// Element types of tensors: their names (as in JSON, case ids and safetensors), sizes and limits.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/half.h"

namespace deltagauge {

enum class DType : std::uint8_t { f64, f32, bf16, f16, i32, i64, boolean };

std::string_view name(DType dtype);        // "bf16"
DType parse_dtype(std::string_view text);  // throws Error on an unknown name

constexpr std::size_t size_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
    case DType::f16:
      return 2;
    case DType::boolean:
      return 1;
  }
  return 0;
}
constexpr bool is_float(DType dtype) { return dtype <= DType::f16; }
// u = 2^-p: the largest relative error of one rounding to nearest. 0 for integers.
constexpr double unit_roundoff(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    case DType::f16:
      return 0x1p-11;
    default:
      return 0;
  }
}
double round_to(DType dtype, double x);                      // nearest value of the format, ties to even
std::int64_t ulp_distance(DType dtype, double a, double b);  // steps between the two in the format's own grid; both are
                                                             // rounded to it first; -0 and +0 are 0 apart; a NaN on one
                                                             // side only is INT64_MAX, on both sides 0
double largest_finite(DType dtype);
double smallest_normal(DType dtype);
double smallest_subnormal(DType dtype);

}  // namespace deltagauge
