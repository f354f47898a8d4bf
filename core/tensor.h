// Host tensors: a dtype, a shape, strides in elements and the bytes. Values cross as double (exact for every format).
#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "core/dtype.h"

namespace deltagauge {

using Shape = std::vector<std::int64_t>;

class Tensor {
 public:
  Tensor() = default;
  Tensor(DType dtype, Shape shape);                                // contiguous, zero-filled
  static Tensor strided(DType dtype, Shape shape, Shape strides);  // zero-filled storage that just covers the strides

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  const Shape& strides() const { return strides_; }  // in elements
  std::int64_t dim(int i) const { return shape_[static_cast<std::size_t>(i)]; }
  std::int64_t numel() const;
  bool contiguous() const;
  bool empty() const { return numel() == 0; }

  std::byte* data() { return bytes_.data(); }
  const std::byte* data() const { return bytes_.data(); }
  std::size_t nbytes() const { return bytes_.size(); }

  // Elements by position in storage. store() rounds to the dtype (nearest even).
  double load(std::int64_t offset) const;
  void store(std::int64_t offset, double value);
  // Elements by logical index, bounds-checked.
  std::int64_t offset_of(std::span<const std::int64_t> index) const;
  double at(std::initializer_list<std::int64_t> index) const { return load(offset_of({index.begin(), index.size()})); }
  void set(std::initializer_list<std::int64_t> index, double v) { store(offset_of({index.begin(), index.size()}), v); }

  // The storage as T (float, double, Bf16, F16, std::int32_t, std::int64_t, std::uint8_t). Throws when T is not the dtype.
  template <class T>
  std::span<T> as();
  template <class T>
  std::span<const T> as() const;

 private:
  DType dtype_ = DType::f32;
  Shape shape_, strides_;
  std::vector<std::byte> bytes_;
};

// Named tensors, in name order. The names are those of docs/report-format.md: q k v g beta initial_state cu_seqlens ...
using Tensors = std::map<std::string, Tensor, std::less<>>;

Shape contiguous_strides(const Shape& shape);
std::string to_string(const Shape& shape);         // "[3, 4]"
std::vector<double> to_f64(const Tensor& tensor);  // logical (row-major) order
Tensor from_f64(DType dtype, Shape shape, std::span<const double> values);
Tensor cast(const Tensor& tensor, DType dtype);                             // contiguous
Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t count);  // contiguous copy of a range of dim 0
bool bitwise_equal(const Tensor& a, const Tensor& b);                       // dtype, shape and every bit of every element
const Tensor& get(const Tensors& tensors, std::string_view name);           // throws Error naming the missing tensor
const Tensor* find(const Tensors& tensors, std::string_view name);          // nullptr when absent

}  // namespace deltagauge
