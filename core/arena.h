// Arena: one block of bytes that holds every tensor of a call between guard bands, so that a wrong read or write shows.
//   [guard | payload | guard | payload | ... | guard]
// Inputs are copied in; outputs are pre-filled with a sentinel. A device backend uploads image() in one copy, runs, and
// downloads it in one copy; a CPU backend works in image() itself. audit() then compares against what was laid out.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "core/tensor.h"

namespace deltagauge {

// What stands in guards and in unwritten outputs. nan: quiet NaN whose payload is the tensor's number, so that a NaN in
// an output names the tensor that was over-read. huge: 1e30 (or the largest finite value), which survives max() and select.
enum class Fill : std::uint8_t { nan, huge };

// Of bytes that resize() leaves as they are: gigabytes that are written next need not be zeroed, on one core, first.
struct UnwrittenBytes : std::allocator<std::byte> {
  template <class Other>
  struct rebind {
    using other = std::conditional_t<std::is_same_v<Other, std::byte>, UnwrittenBytes, std::allocator<Other>>;
  };
  void construct(std::byte*) noexcept {}
};

class Arena {
 public:
  using Image = std::vector<std::byte, UnwrittenBytes>;
  static constexpr std::size_t kGuardBytes = 64 * 1024;  // at least 128 rows of 256 f16 channels
  static constexpr std::size_t kAlign = 256;             // payloads start at a multiple of this, plus their skew

  explicit Arena(Fill fill) : fill_(fill) {}
  // skew: bytes added to the aligned start, to test unaligned tensors. The tensor keeps its strides.
  void add_input(std::string_view name, const Tensor& tensor, std::size_t skew = 0);
  void add_output(std::string_view name, DType dtype, Shape shape);
  // An output that is an input before the call, in the same memory. Between its slots (dimension 0, of which strides may be
  // larger than a slot) stands what stands in a guard.
  void add_in_place(std::string_view name, const Tensor& tensor);
  void add_workspace(std::string_view name, std::size_t bytes);  // filled like a guard before each run

  // Another tensor of the same dtype, shape and strides in place of an input or of an output advanced in place.
  void replace(std::string_view name, const Tensor& tensor);
  void reset();  // lays everything out afresh: inputs, sentinels, guards
  Image& image() { return image_; }
  std::size_t offset(std::string_view name) const;  // of the payload in image(); throws Error on an unknown name
  Tensor take(std::string_view name) const;         // an output (or input) as it stands in image() now
  // Writes bytes of consecutive elements from logical element first on.
  void put(std::string_view name, std::int64_t first, const std::byte* from, std::size_t bytes);

  // Damage done by the run, one sentence each: guards or inputs that changed (tensor, byte offset, first difference).
  std::vector<std::string> audit() const;
  // Elements of an output that still hold this arena's sentinel, as a mask in storage order. An element unwritten under
  // both fills is unwritten; under one only it may be a coincidence. Of an output advanced in place: elements, in logical
  // order, with the bits that they had before.
  std::vector<bool> untouched(std::string_view name) const;

 private:
  enum class Role : std::uint8_t { input, output, in_place, workspace };
  struct Slot {
    std::string name;
    Role role;
    DType dtype;
    Shape shape, strides;
    std::size_t offset, bytes;
    Tensor original;  // of inputs and outputs advanced in place
  };
  const Slot& slot(std::string_view name) const;
  Slot& append(std::string_view name, Role role, std::size_t bytes, std::size_t skew);
  template <class Piece>
  static void for_each_piece(const Slot& s, Piece piece);
  static std::size_t piece_bytes(const Slot& s);
  static void copy_pieces(const Slot& s, std::byte* image, const std::byte* from);
  void lay_out(Image& image) const;  // as reset() does
  void paint(std::byte* at, std::size_t bytes, DType dtype, int number) const;

  Fill fill_;
  std::vector<Slot> slots_;
  Image image_;
  std::size_t end_ = kGuardBytes;
};

}  // namespace deltagauge
