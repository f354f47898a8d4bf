// A 64-bit digest of bits (XXH3), to say whether two outputs are the same without keeping them. Not for security.
#pragma once
#include <cstddef>
#include <span>
#include <string>

#include "core/tensor.h"

namespace deltagauge {

std::string digest(std::span<const std::byte> bytes);  // 16 lower-case hex digits
std::string digest(const Tensor& tensor);              // of a contiguous tensor's storage

}  // namespace deltagauge
