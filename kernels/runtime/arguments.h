// Checks of launch arguments, alike for every op: each throws Error that names the op and the argument, with expected and
// got.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/dtype.h"
#include "core/error.h"

namespace deltagauge::kernels::runtime {

inline void require_size(std::string_view op, std::string_view what, std::int64_t value, std::int64_t least) {
  if (value < least) fail(op, ": ", what, ": expected at least ", least, ", got ", value);
}

inline bool aligned(const void* pointer, std::size_t bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

// An optional pointer: null is fine. alignment: in bytes.
inline void require_aligned(std::string_view op, std::string_view what, const void* pointer, std::size_t alignment) {
  if (!aligned(pointer, alignment))
    fail(op, ": ", what, ": expected an address that is a multiple of ", alignment, " bytes, got remainder ",
         reinterpret_cast<std::uintptr_t>(pointer) % alignment);
}

inline void require_pointer(std::string_view op, std::string_view what, const void* pointer, std::size_t alignment) {
  if (pointer == nullptr) fail(op, ": ", what, ": expected a device pointer, got null");
  require_aligned(op, what, pointer, alignment);
}

// Without cu_seqlens, N sequences share the T rows evenly.
inline void require_even_split(std::string_view op, const void* cu_seqlens, std::int64_t T, std::int64_t N) {
  if (cu_seqlens == nullptr && (N == 0 ? T != 0 : T % N != 0))
    fail(op, ": cu_seqlens: expected a device pointer, or T a multiple of N, got null with T = ", T, " and N = ", N);
}

// A reason in words when dtype is not in the space separated list.
inline std::optional<std::string> not_among(std::string_view what, DType dtype, std::string_view list) {
  const std::string padded = " " + std::string(list) + " ";
  if (padded.find(" " + std::string(name(dtype)) + " ") != std::string::npos) return std::nullopt;
  return std::string(what) + ": expected one of " + std::string(list) + ", got " + std::string(name(dtype));
}

}  // namespace deltagauge::kernels::runtime
