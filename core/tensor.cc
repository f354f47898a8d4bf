#include "core/tensor.h"

#include <cmath>
#include <cstring>

#include "core/error.h"

namespace deltagauge {
namespace {

template <class T>
T read(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}
template <class T>
void write(std::byte* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<Bf16>() {
  return DType::bf16;
}
template <>
constexpr DType dtype_of<F16>() {
  return DType::f16;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::boolean;
}

// Calls visit(storage offset) for every element in logical order.
template <class Visit>
void for_each_offset(const Tensor& t, Visit visit) {
  if (t.numel() == 0) return;
  const std::size_t rank = t.shape().size();
  Shape index(rank, 0);
  std::int64_t offset = 0;
  for (;;) {
    visit(offset);
    std::size_t d = rank;
    for (;;) {
      if (d == 0) return;
      --d;
      offset += t.strides()[d];
      if (++index[d] < t.shape()[d]) break;
      offset -= t.strides()[d] * t.shape()[d];
      index[d] = 0;
    }
  }
}

}  // namespace

Shape contiguous_strides(const Shape& shape) {
  Shape strides(shape.size());
  std::int64_t step = 1;
  for (std::size_t d = shape.size(); d-- > 0;) {
    strides[d] = step;
    step *= shape[d];
  }
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i ? ", " : "") + std::to_string(shape[i]);
  return text + "]";
}

Tensor::Tensor(DType dtype, Shape shape) : Tensor(strided(dtype, shape, contiguous_strides(shape))) {}

Tensor Tensor::strided(DType dtype, Shape shape, Shape strides) {
  if (shape.size() != strides.size()) fail("tensor: ", shape.size(), " dimensions but ", strides.size(), " strides");
  Tensor t;
  t.dtype_ = dtype;
  std::int64_t last = 0;
  bool none = false;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] < 0) fail("tensor: expected dimensions >= 0, got ", to_string(shape));
    if (strides[d] < 0) fail("tensor: expected strides >= 0, got ", to_string(strides));
    std::int64_t reach = 0;
    if (__builtin_mul_overflow(shape[d] ? shape[d] - 1 : 0, strides[d], &reach) ||
        __builtin_add_overflow(last, reach, &last) || last > (std::int64_t{1} << 46))
      fail("tensor: shape ", to_string(shape), " is too large");
    none = none || shape[d] == 0;
  }
  t.shape_ = std::move(shape);
  t.strides_ = std::move(strides);
  t.bytes_.resize(none ? 0 : static_cast<std::size_t>(last + 1) * size_of(dtype));
  return t;
}

std::int64_t Tensor::numel() const {
  if (shape_.empty()) return bytes_.empty() ? 0 : 1;
  std::int64_t n = 1;
  for (const std::int64_t d : shape_) n *= d;
  return n;
}

bool Tensor::contiguous() const { return strides_ == contiguous_strides(shape_) || numel() <= 1; }

double Tensor::load(std::int64_t offset) const {
  const std::byte* at = bytes_.data() + static_cast<std::size_t>(offset) * size_of(dtype_);
  switch (dtype_) {
    case DType::f64:
      return read<double>(at);
    case DType::f32:
      return read<float>(at);
    case DType::bf16:
      return deltagauge::to_f64(read<Bf16>(at));
    case DType::f16:
      return deltagauge::to_f64(read<F16>(at));
    case DType::i32:
      return read<std::int32_t>(at);
    case DType::i64:
      return static_cast<double>(read<std::int64_t>(at));
    case DType::boolean:
      return read<std::uint8_t>(at);
  }
  return 0;
}

void Tensor::store(std::int64_t offset, double value) {
  std::byte* at = bytes_.data() + static_cast<std::size_t>(offset) * size_of(dtype_);
  switch (dtype_) {
    case DType::f64:
      return write(at, value);
    case DType::f32:
      return write(at, static_cast<float>(value));
    case DType::bf16:
      return write(at, to_bf16(value));
    case DType::f16:
      return write(at, to_f16(value));
    case DType::i32:
      return write(at, static_cast<std::int32_t>(value));
    case DType::i64:
      return write(at, static_cast<std::int64_t>(value));
    case DType::boolean:
      return write(at, static_cast<std::uint8_t>(value != 0));
  }
}

std::int64_t Tensor::offset_of(std::span<const std::int64_t> index) const {
  if (index.size() != shape_.size())
    fail("tensor: expected ", shape_.size(), " indices for shape ", to_string(shape_), ", got ", index.size());
  std::int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) {
    if (index[d] < 0 || index[d] >= shape_[d])
      fail("tensor: index ", to_string({index.begin(), index.end()}), " is outside shape ", to_string(shape_));
    offset += index[d] * strides_[d];
  }
  return offset;
}

template <class T>
std::span<T> Tensor::as() {
  if (dtype_of<T>() != dtype_) fail("tensor: stored as ", name(dtype_), ", asked for as ", name(dtype_of<T>()));
  return {reinterpret_cast<T*>(bytes_.data()), bytes_.size() / sizeof(T)};
}
template <class T>
std::span<const T> Tensor::as() const {
  const auto span = const_cast<Tensor*>(this)->as<T>();
  return {span.data(), span.size()};
}
#define DELTAGAUGE_AS(T)                 \
  template std::span<T> Tensor::as<T>(); \
  template std::span<const T> Tensor::as<T>() const;
DELTAGAUGE_AS(double)
DELTAGAUGE_AS(float)
DELTAGAUGE_AS(Bf16)
DELTAGAUGE_AS(F16)
DELTAGAUGE_AS(std::int32_t)
DELTAGAUGE_AS(std::int64_t)
DELTAGAUGE_AS(std::uint8_t)
#undef DELTAGAUGE_AS

std::vector<double> to_f64(const Tensor& tensor) {
  std::vector<double> values;
  values.reserve(static_cast<std::size_t>(tensor.numel()));
  for_each_offset(tensor, [&](std::int64_t offset) { values.push_back(tensor.load(offset)); });
  return values;
}

Tensor from_f64(DType dtype, Shape shape, std::span<const double> values) {
  Tensor t(dtype, std::move(shape));
  if (t.numel() != static_cast<std::int64_t>(values.size()))
    fail("tensor: shape ", to_string(t.shape()), " holds ", t.numel(), " elements, got ", values.size());
  for (std::size_t i = 0; i < values.size(); ++i) t.store(static_cast<std::int64_t>(i), values[i]);
  return t;
}

Tensor cast(const Tensor& tensor, DType dtype) {
  Tensor out(dtype, tensor.shape());
  std::int64_t i = 0;
  for_each_offset(tensor, [&](std::int64_t offset) { out.store(i++, tensor.load(offset)); });
  return out;
}

Tensor rows(const Tensor& tensor, std::int64_t first, std::int64_t count) {
  if (tensor.shape().empty() || first < 0 || count < 0 || first + count > tensor.dim(0))
    fail("tensor: rows [", first, ", ", first + count, ") of shape ", to_string(tensor.shape()));
  Shape shape = tensor.shape();
  shape[0] = count;
  Tensor out(tensor.dtype(), shape);
  const std::size_t size = size_of(tensor.dtype());
  const Tensor* source = &tensor;
  Tensor packed;
  if (!tensor.contiguous()) source = &(packed = cast(tensor, tensor.dtype()));
  const std::size_t row = tensor.dim(0) ? static_cast<std::size_t>(tensor.numel() / tensor.dim(0)) * size : 0;
  if (row && count)
    std::memcpy(out.data(), source->data() + static_cast<std::size_t>(first) * row, static_cast<std::size_t>(count) * row);
  return out;
}

bool bitwise_equal(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  std::vector<std::int64_t> offsets;
  offsets.reserve(static_cast<std::size_t>(a.numel()));
  for_each_offset(a, [&](std::int64_t offset) { offsets.push_back(offset); });
  const std::size_t size = size_of(a.dtype());
  std::size_t i = 0;
  bool equal = true;
  for_each_offset(b, [&](std::int64_t offset) {
    equal = equal && std::memcmp(a.data() + static_cast<std::size_t>(offsets[i++]) * size,
                                 b.data() + static_cast<std::size_t>(offset) * size, size) == 0;
  });
  return equal;
}

const Tensor* find(const Tensors& tensors, std::string_view name) {
  const auto it = tensors.find(name);
  return it == tensors.end() ? nullptr : &it->second;
}

const Tensor& get(const Tensors& tensors, std::string_view name) {
  if (const Tensor* t = find(tensors, name)) return *t;
  std::string known;
  for (const auto& [key, value] : tensors) known += " " + key;
  fail("tensor '", name, "' is missing; there are:", known.empty() ? " none" : known);
}

}  // namespace deltagauge
