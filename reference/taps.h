// Range statistics of named intermediates: what a store met, and how near it came to the ends of its format.
#pragma once
#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "core/dtype.h"

namespace deltagauge::reference {

struct Range {
  DType format = DType::f32;    // of the store; a tf32 store counts as f32, a split by its hi part
  std::int64_t count = 0;       // values stored
  std::int64_t zeros = 0;       // exact zeros before the store
  std::int64_t non_finite = 0;  // NaN or Inf before the store
  std::int64_t overflows = 0;   // finite before, infinite after
  std::int64_t flushed = 0;     // non-zero before, zero after
  std::int64_t subnormals = 0;  // subnormal after
  double min_abs = std::numeric_limits<double>::infinity();  // smallest non-zero |x| before the store; inf: none
  double max_abs = 0;                                        // largest finite |x| before the store

  // Binary exponents floor(log2 |x|) of the two; 0 when nothing but zeros was stored.
  int min_exponent() const;
  int max_exponent() const;
  // log2(largest finite of the format / max_abs): below 0 means overflow; +inf when nothing but zeros was stored.
  double headroom_bits() const;
  void add(const Range& other);  // the same tap from another head or chunk
};

// By tap name: decay Akk Ainv P S resid v_new v_new_decayed o final_state, and decay_i = exp(b_i - b_r),
// decay_j = exp(b_r - b_j) of a split gate. What a decay is before its store is f64, held within exp(-700) and exp(700).
using Ranges = std::map<std::string, Range, std::less<>>;

// Adds what one store of before -> after met to ranges[name]. Spans of equal length.
void record(Ranges& ranges, std::string_view name, DType format, std::span<const float> before,
            std::span<const float> after);
void record(Ranges& ranges, std::string_view name, DType format, std::span<const double> before,
            std::span<const double> after);
void merge(Ranges& into, const Ranges& from);

}  // namespace deltagauge::reference
