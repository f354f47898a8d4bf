#include "core/arena.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <type_traits>

#include "core/error.h"

namespace deltagauge {
namespace {

// The element that fills guards and unwritten outputs: a quiet NaN that carries number, or 1e30 (the largest finite value
// where 1e30 does not fit).
std::uint64_t fill_bits(Fill fill, DType dtype, int number) {
  const auto payload = static_cast<std::uint64_t>(number);
  const bool nan = fill == Fill::nan;
  switch (dtype) {
    case DType::f64:
      return nan ? 0x7ff8000000000000ull | payload : std::bit_cast<std::uint64_t>(1e30);
    case DType::f32:
      return nan ? 0x7fc00000u | payload : std::bit_cast<std::uint32_t>(1e30f);
    case DType::bf16:
      return nan ? 0x7fc0u | (payload & 0x3f) : to_bf16(1e30).bits;
    case DType::f16:
      return nan ? 0x7e00u | (payload & 0x1ff) : to_f16(65504).bits;
    case DType::i32:
      return nan ? 0x80000000u | payload : 0x7f000000u;
    case DType::i64:
      return nan ? 0x8000000000000000ull | payload : 0x7f00000000000000ull;
    case DType::boolean:
      return nan ? 0xfe : 0xfd;
  }
  return 0;
}

// Calls piece(first, count) for the pieces of a run of bytes, a megabyte each; of a long run on all cores.
template <class Piece>
void for_each_megabyte(std::size_t bytes, Piece piece) {
  constexpr std::size_t kMegabyte = std::size_t{1} << 20;
#pragma omp parallel for if (bytes > 64 * kMegabyte) schedule(static)
  for (std::size_t first = 0; first < bytes; first += kMegabyte) piece(first, std::min(kMegabyte, bytes - first));
}

// Calls visit with the size of an element as a constant, since a compiler compares and copies those in one instruction.
template <class Visit>
void with_size(std::size_t size, Visit visit) {
  if (size == 1) visit(std::integral_constant<std::size_t, 1>());
  if (size == 2) visit(std::integral_constant<std::size_t, 2>());
  if (size == 4) visit(std::integral_constant<std::size_t, 4>());
  if (size == 8) visit(std::integral_constant<std::size_t, 8>());
}

std::size_t align_up(std::size_t value) { return (value + Arena::kAlign - 1) / Arena::kAlign * Arena::kAlign; }

}  // namespace

void Arena::paint(std::byte* at, std::size_t bytes, DType dtype, int number) const {
  const std::uint64_t bits = fill_bits(fill_, dtype, number);
  const std::size_t size = size_of(dtype);
  std::array<std::byte, 64> line;  // whole elements of any dtype: a replay paints megabytes some thousand times
  for (std::size_t i = 0; i < line.size(); i += size) std::memcpy(line.data() + i, &bits, size);
  for_each_megabyte(bytes / size * size, [&](std::size_t first, std::size_t count) {
    std::byte* to = at + first;
    for (; count >= line.size(); to += line.size(), count -= line.size()) std::memcpy(to, line.data(), line.size());
    std::memcpy(to, line.data(), count);
  });
  for (std::size_t i = bytes / size * size; i < bytes; ++i) at[i] = std::byte{0xff};
}

Arena::Slot& Arena::append(std::string_view name, Role role, std::size_t bytes, std::size_t skew) {
  for (const Slot& s : slots_)
    if (s.name == name) fail("arena: tensor '", name, "' is already there");
  const std::size_t offset = align_up(end_) + skew;
  end_ = align_up(offset + bytes) + kGuardBytes;
  slots_.push_back({std::string(name), role, DType::f32, {}, {}, offset, bytes, {}});
  return slots_.back();
}

void Arena::add_input(std::string_view name, const Tensor& tensor, std::size_t skew) {
  Slot& s = append(name, Role::input, tensor.nbytes(), skew);
  s.dtype = tensor.dtype();
  s.shape = tensor.shape();
  s.strides = tensor.strides();
  s.original = tensor;
}

void Arena::add_output(std::string_view name, DType dtype, Shape shape) {
  const Tensor like(dtype, shape);
  Slot& s = append(name, Role::output, like.nbytes(), 0);
  s.dtype = dtype;
  s.shape = like.shape();
  s.strides = like.strides();
}

void Arena::add_in_place(std::string_view name, const Tensor& tensor) {
  add_input(name, tensor);
  slots_.back().role = Role::in_place;
}

void Arena::replace(std::string_view name, const Tensor& tensor) {
  for (Slot& s : slots_)
    if (s.name == name) {
      if (tensor.dtype() != s.dtype || tensor.shape() != s.shape || tensor.strides() != s.strides)
        fail("arena: ", name, ": expected ", deltagauge::name(s.dtype), " ", to_string(s.shape), ", got ",
             deltagauge::name(tensor.dtype()), " ", to_string(tensor.shape()));
      s.original = tensor;
      return;
    }
  fail("arena: no tensor '", name, "'");
}

void Arena::add_workspace(std::string_view name, std::size_t bytes) { append(name, Role::workspace, bytes, 0); }

void Arena::reset() { lay_out(image_); }

void Arena::lay_out(Image& image) const {
  image.resize(end_);
  std::size_t at = 0;
  int number = 1;
  for (const Slot& s : slots_) {
    paint(image.data() + at, s.offset - at, s.dtype, number);  // the guard before belongs to this tensor
    if (s.role == Role::input) {
      for_each_megabyte(s.bytes, [&](std::size_t first, std::size_t count) {
        std::memcpy(image.data() + s.offset + first, s.original.data() + first, count);
      });
    } else if (s.role == Role::in_place) {
      paint(image.data() + s.offset, s.bytes, s.dtype, number);
      copy_pieces(s, image.data(), s.original.data());
    } else {
      paint(image.data() + s.offset, s.bytes, s.dtype, number);
    }
    at = s.offset + s.bytes;
    const std::size_t after = align_up(at) + kGuardBytes / 2;  // the first half of the guard after it, too
    paint(image.data() + at, after - at, s.dtype, number);
    at = after;
    ++number;
  }
  paint(image.data() + at, end_ - at, DType::f32, number);
}

const Arena::Slot& Arena::slot(std::string_view name) const {
  for (const Slot& s : slots_)
    if (s.name == name) return s;
  fail("arena: no tensor '", name, "'");
}

std::size_t Arena::offset(std::string_view name) const { return slot(name).offset; }

// Calls piece(offset in the storage, bytes) for each run of elements that belong together.
template <class Piece>
void Arena::for_each_piece(const Slot& s, Piece piece) {
  const std::int64_t count = s.shape.empty() ? 1 : s.shape[0];
  const std::size_t stride = s.strides.empty() ? 0 : static_cast<std::size_t>(s.strides[0]) * size_of(s.dtype);
  for (std::int64_t i = 0; i < count; ++i) piece(static_cast<std::size_t>(i) * stride, piece_bytes(s));
}

std::size_t Arena::piece_bytes(const Slot& s) {
  std::size_t bytes = size_of(s.dtype);
  for (std::size_t d = 1; d < s.shape.size(); ++d) bytes *= static_cast<std::size_t>(s.shape[d]);
  return bytes;
}

void Arena::copy_pieces(const Slot& s, std::byte* image, const std::byte* from) {
  for_each_piece(s, [&](std::size_t at, std::size_t bytes) {
    if (bytes) std::memcpy(image + s.offset + at, from + at, bytes);
  });
}

void Arena::put(std::string_view name, std::int64_t first, const std::byte* from, std::size_t bytes) {
  const Slot& s = slot(name);
  const std::size_t piece = piece_bytes(s), at = static_cast<std::size_t>(first) * size_of(s.dtype);
  const std::size_t stride = static_cast<std::size_t>(s.strides[0]) * size_of(s.dtype);
  for (std::size_t done = 0; done < bytes;) {
    const std::size_t inside = (at + done) % piece, count = std::min(bytes - done, piece - inside);
    std::memcpy(image_.data() + s.offset + (at + done) / piece * stride + inside, from + done, count);
    done += count;
  }
}

Tensor Arena::take(std::string_view name) const {
  const Slot& s = slot(name);
  Tensor t = Tensor::strided(s.dtype, s.shape, s.strides);
  for_each_megabyte(s.bytes, [&](std::size_t first, std::size_t count) {
    std::memcpy(t.data() + first, image_.data() + s.offset + first, count);
  });
  return t;
}

std::vector<std::string> Arena::audit() const {
  Image fresh;
  lay_out(fresh);
  std::vector<std::string> damage;
  const auto compare = [&](const std::string& what, std::size_t first, std::size_t last) {
    if (std::memcmp(image_.data() + first, fresh.data() + first, last - first) == 0) return;
    std::size_t count = 0, where = last;
    for (std::size_t i = last; i-- > first;)
      if (image_[i] != fresh[i]) {
        ++count;
        where = i;
      }
    damage.push_back(what + ": " + std::to_string(count) + " bytes changed, the first at byte " +
                     std::to_string(where - first) + " of " + std::to_string(last - first));
  };
  std::size_t at = 0;
  std::string before = "start";
  for (const Slot& s : slots_) {
    compare("guard between " + before + " and " + s.name, at, s.offset);
    if (s.role == Role::input) compare("input " + s.name, s.offset, s.offset + s.bytes);
    if (s.role == Role::in_place) {
      copy_pieces(s, fresh.data(), image_.data() + s.offset);  // the slots may change, what lies between may not
      compare("padding of " + s.name, s.offset, s.offset + s.bytes);
    }
    at = s.offset + s.bytes;
    before = s.name;
  }
  compare("guard after " + before, at, end_);
  return damage;
}

std::vector<bool> Arena::untouched(std::string_view name) const {
  const Slot& s = slot(name);
  const std::size_t size = size_of(s.dtype);
  if (s.role == Role::in_place) {
    std::vector<bool> same;
    with_size(size, [&](auto element) {
      for_each_piece(s, [&](std::size_t at, std::size_t bytes) {
        for (std::size_t i = at; i < at + bytes; i += element)
          same.push_back(std::memcmp(image_.data() + s.offset + i, s.original.data() + i, element) == 0);
      });
    });
    return same;
  }
  int number = 1;
  for (const Slot& other : slots_) {
    if (&other == &s) break;
    ++number;
  }
  const std::uint64_t bits = fill_bits(fill_, s.dtype, number);
  std::vector<bool> mask(s.bytes / size);
  with_size(size, [&](auto element) {
    for (std::size_t i = 0; i < mask.size(); ++i)
      mask[i] = std::memcmp(image_.data() + s.offset + i * element, &bits, element) == 0;
  });
  return mask;
}

}  // namespace deltagauge
