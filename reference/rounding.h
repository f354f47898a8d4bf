// Rounding policies: what an intermediate becomes when it is stored as an operand. Values in, the stored values out, in the
// working type. split, split_tf32: the value is kept as hi + lo, hi = round(x), lo = round(x - hi) (tf32: cut off).
#pragma once
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

#include "core/dtype.h"
#include "reference/staging.h"

namespace deltagauge::reference {

// x rounded to nearest, ties to even, to the dtype, in the working type.
template <class Real>
Real round_value(DType dtype, Real x) {
  if constexpr (std::is_same_v<Real, float>) {
    switch (dtype) {
      case DType::bf16:
        return round_bf16(x);
      case DType::f16:
        return round_f16(x);
      default:
        return x;
    }
  } else {
    return dtype == DType::f64 ? x : round_to(dtype, x);
  }
}

// The format an element of a store has; tf32 reads as f32, which has its exponent range.
constexpr DType store_format(Store store, DType io) {
  switch (store) {
    case Store::f64:
      return DType::f64;
    case Store::f32:
    case Store::tf32:
    case Store::tf32_cut:
    case Store::split_tf32:
      return DType::f32;
    case Store::io:
    case Store::split:
    case Store::io_scaled:
    case Store::split_scaled:
      return io;
    case Store::f16:
      return DType::f16;
    case Store::bf16:
      return DType::bf16;
  }
  return io;
}

constexpr bool is_split(Store store) {
  return store == Store::split || store == Store::split_tf32 || store == Store::split_scaled;
}
constexpr bool is_scaled(Store store, DType io) {
  return io == DType::f16 && (store == Store::io_scaled || store == Store::split_scaled);
}

// Rounds x in place as the store does, scaling left to the caller; for split x becomes hi and lo the rest, else lo stays
// empty.
template <class Real>
void round_store(Store store, DType io, std::span<Real> x, std::vector<Real>& lo) {
  lo.clear();
  const DType format = store_format(store, io);
  if (store == Store::tf32) {
    for (Real& e : x) e = round_tf32(static_cast<float>(e));
    return;
  }
  if (store == Store::tf32_cut) {
    for (Real& e : x) e = cut_tf32(static_cast<float>(e));
    return;
  }
  if (store == Store::split_tf32) {
    lo.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const float value = static_cast<float>(x[i]), hi = round_tf32(value);
      lo[i] = truncate_tf32(value - hi);
      x[i] = hi;
    }
    return;
  }
  if (is_split(store) && format != DType::f32 && format != DType::f64) {
    lo.resize(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) {
      const Real hi = round_value(format, x[i]);
      lo[i] = round_value(format, x[i] - hi);
      x[i] = hi;
    }
    return;
  }
  switch (format) {  // one loop a format, so that the compiler sees the rounding
    case DType::bf16:
      for (Real& e : x) e = round_value(DType::bf16, e);
      break;
    case DType::f16:
      for (Real& e : x) e = round_value(DType::f16, e);
      break;
    case DType::f32:
      for (Real& e : x) e = static_cast<float>(e);
      break;
    default:
      break;
  }
}

}  // namespace deltagauge::reference
