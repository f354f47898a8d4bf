// safetensors files: 8 bytes of header length (little endian), a JSON header, then the data.
//   {"__metadata__": {"key": "text"}, "q": {"dtype": "BF16", "shape": [129, 2, 128], "data_offsets": [0, 66048]}, ...}
// A file is taken as hostile: every field is checked against the bytes that are there before anything is allocated for it.
#pragma once
#include <cstddef>
#include <map>
#include <span>
#include <string>

#include "core/tensor.h"

namespace deltagauge::validate {

struct Safetensors {
  Tensors tensors;
  std::map<std::string, std::string> metadata;
  std::string sha256{};  // of the bytes that were parsed; to_safetensors does not look at it
};

// Throw Error that starts with the path and says what was expected and got, on anything but a well-formed file: a header
// beyond the file or 100 MB, a NUL or invalid UTF-8 or JSON of another shape in it, a name twice, a dtype other than F64 F32
// BF16 F16 I32 I64 BOOL, more than 8 dimensions, a size that overflows or differs from dtype times shape, offsets that
// leave the data, overlap or leave a hole. The tensors together take no more memory than the file.
Safetensors read_safetensors(const std::string& path);  // the file is mapped; it must not be truncated meanwhile
Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& path);

// The bytes of a file: tensors made contiguous, widest dtypes first and then by name, the header padded with spaces to a
// multiple of 8, so that every tensor is aligned.
std::string to_safetensors(const Safetensors& content);

}  // namespace deltagauge::validate
