#include "core/digest.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>

#include "core/error.h"

namespace deltagauge {

std::string digest(std::span<const std::byte> bytes) {
  std::uint64_t hash = XXH3_64bits(bytes.data(), bytes.size());
  std::array<char, 16> text{};
  for (std::size_t i = text.size(); i-- > 0; hash >>= 4) text[i] = "0123456789abcdef"[hash & 15];
  return {text.begin(), text.end()};
}

std::string digest(const Tensor& tensor) {
  if (!tensor.contiguous()) fail("digest: expected a contiguous tensor, got strides ", to_string(tensor.strides()));
  return digest({tensor.data(), tensor.nbytes()});
}

}  // namespace deltagauge
