// Division by a number that is known at launch: a product and a shift in place of the device's division.
#pragma once
#include <cstdint>

namespace deltagauge::kernels {

// n / d for n < 2^31 and d in [1, 2^31). With l = ceil(log2 d) and factor = ceil(2^(31 + l) / d), n factor / 2^(31 + l) is
// at most n / 2^31 / d above n / d, which passes no whole number.
class Divisor {
 public:
  explicit Divisor(std::uint32_t d) : d_(d) {
    std::uint32_t log = 0;
    while ((std::uint32_t{1} << log) < d) ++log;
    if (d > 1) factor_ = static_cast<std::uint32_t>(((std::uint64_t{1} << (31 + log)) + d - 1) / d), shift_ = log - 1;
  }
  __device__ std::uint32_t quotient(std::uint32_t n) const { return d_ == 1 ? n : __umulhi(n, factor_) >> shift_; }
  __device__ std::uint32_t remainder(std::uint32_t n, std::uint32_t quotient) const { return n - quotient * d_; }

 private:
  std::uint32_t d_, factor_ = 0, shift_ = 0;
};

}  // namespace deltagauge::kernels
