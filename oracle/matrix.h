// Small double-double matrices, four columns to a pack. Products and solves go row by row over y += a x, in index order.
#pragma once
#include <cstdint>
#include <vector>

#include "oracle/real.h"

namespace deltagauge::oracle {

class Matrix {
 public:
  using Four = Pack<DoubleDouble>::type;
  static constexpr std::int64_t kLanes = Pack<DoubleDouble>::kLanes;
  Matrix() = default;
  Matrix(std::int64_t rows, std::int64_t cols)  // zero
      : rows_(rows), cols_(cols), packs_((cols + kLanes - 1) / kLanes), data_(static_cast<std::size_t>(rows * packs_)) {}
  std::int64_t rows() const { return rows_; }
  std::int64_t cols() const { return cols_; }
  DoubleDouble at(std::int64_t i, std::int64_t j) const {
    return Pack<DoubleDouble>::get(row(i)[j / kLanes].four, static_cast<int>(j % kLanes));
  }
  void set(std::int64_t i, std::int64_t j, DoubleDouble x) {
    Pack<DoubleDouble>::set(row(i)[j / kLanes].four, static_cast<int>(j % kLanes), x);
  }
  // Row i += a * row l of x.
  [[gnu::always_inline]] void add_scaled(std::int64_t i, DoubleDouble a, const Matrix& x, std::int64_t l) {
    const Four scale = Pack<DoubleDouble>::broadcast(a);
    Aligned* y = row(i);
    const Aligned* from = x.row(l);
    for (std::int64_t p = 0; p < packs_; ++p) y[p].four = y[p].four + scale * from[p].four;
  }

 private:
  struct alignas(64) Aligned {
    Four four{};
  };
  Aligned* row(std::int64_t i) { return data_.data() + i * packs_; }
  const Aligned* row(std::int64_t i) const { return data_.data() + i * packs_; }
  std::int64_t rows_ = 0, cols_ = 0, packs_ = 0;
  std::vector<Aligned> data_;
};

inline void add_product(Matrix& c, const Matrix& a, const Matrix& b) {  // c += a b; exact zeros of a are passed over
  vectorised<DoubleDouble>([&] {
    for (std::int64_t i = 0; i < c.rows(); ++i)
      for (std::int64_t l = 0; l < b.rows(); ++l)
        if (const DoubleDouble x = a.at(i, l); x.hi != 0) c.add_scaled(i, x, b, l);
  });
}
inline void solve_unit_lower(const Matrix& a, Matrix& x) {  // x := (I + a)^-1 x, a strictly lower
  vectorised<DoubleDouble>([&] {
    for (std::int64_t i = 0; i < x.rows(); ++i)
      for (std::int64_t l = 0; l < i; ++l)
        if (const DoubleDouble f = a.at(i, l); f.hi != 0) x.add_scaled(i, -f, x, l);
  });
}
inline Matrix transposed(const Matrix& m) {
  Matrix t(m.cols(), m.rows());
  for (std::int64_t i = 0; i < m.rows(); ++i)
    for (std::int64_t j = 0; j < m.cols(); ++j) t.set(j, i, m.at(i, j));
  return t;
}

}  // namespace deltagauge::oracle
