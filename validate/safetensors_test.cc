// Reading and writing safetensors: round trips, a file written by NumPy byte by byte, and hostile files.
#include "validate/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <random>

#include "core/error.h"
#include "core/inputs.h"
#include "reports/file.h"

namespace deltagauge::validate {
namespace {

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text.data(), text.size())); }
Safetensors parse(const std::string& file) { return parse_safetensors(bytes_of(file), "f"); }

std::string error_of(const std::string& file) {
  try {
    parse(file);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

std::string with_header(const std::string& header, const std::string& data = "") {
  const std::uint64_t length = header.size();
  std::string file(8, '\0');
  std::memcpy(file.data(), &length, 8);
  return file + header + data;
}

Safetensors sample() {
  Safetensors content{make_inputs(parse_id("gdn/fwd/len=3+0+2,HK=1,HV=2,K=4,V=2/bf16/h0=normal=1/seed=5")),
                      {{"a", "b \" \\"}}};
  content.tensors["f64"] = from_f64(DType::f64, {2, 1}, std::vector<double>{0x1.fffffffffffffp-1, -0.0});
  content.tensors["i64"] = from_f64(DType::i64, {1}, std::vector<double>{-3});
  content.tensors["bool"] = from_f64(DType::boolean, {3}, std::vector<double>{1, 0, 1});
  content.tensors["scalar"] = from_f64(DType::f16, {}, std::vector<double>{1.5});
  content.tensors["empty"] = Tensor(DType::f32, {0, 7});
  return content;
}

TEST(Safetensors, reads_back_what_it_wrote) {
  const Safetensors before = sample(), after = parse(to_safetensors(before));
  EXPECT_EQ(after.metadata, before.metadata);
  ASSERT_EQ(after.tensors.size(), before.tensors.size());
  for (const auto& [name, tensor] : before.tensors) EXPECT_TRUE(bitwise_equal(get(after.tensors, name), tensor)) << name;
}

TEST(Safetensors, writes_strided_tensors_contiguously) {
  Tensor strided = Tensor::strided(DType::f32, {2, 2}, {3, 1});
  strided.set({1, 0}, 5);
  const Safetensors after = parse(to_safetensors({{{"t", strided}}, {}}));
  EXPECT_EQ(to_f64(get(after.tensors, "t")), (std::vector<double>{0, 0, 5, 0}));
}

TEST(Safetensors, reads_a_file_that_numpy_laid_out) {
  const std::string python = DELTAGAUGE_PYTHON,
                    path = testing::TempDir() + "numpy_" + std::to_string(::getpid()) + ".safetensors";
  if (!python.starts_with('/') || std::system((python + " -c 'import numpy' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "needs python3-numpy for /usr/bin/python3";
  // As PyTorch's writer does: metadata first, widest dtypes first, the header padded with spaces; bf16 as the top half of
  // f32.
  const std::string script = R"(
import json, struct, sys
import numpy as np
q = np.arange(6, dtype=np.float32).reshape(3, 2) / 4 - 1
bf16 = (q.view(np.uint32) >> 16).astype(np.uint16)
tensors = [("cu_seqlens", "I64", np.array([0, 1, 3], dtype=np.int64)), ("g", "F32", -np.ones((3, 1), dtype=np.float32)),
           ("half", "F16", np.array([0.5, -2], dtype=np.float16)), ("q", "BF16", bf16),
           ("mask", "BOOL", np.array([True, False]))]
header, data = {"__metadata__": {"format": "pt"}}, b""
for name, dtype, array in tensors:
    raw = array.tobytes()
    header[name] = {"dtype": dtype, "shape": list(array.shape), "data_offsets": [len(data), len(data) + len(raw)]}
    data += raw
text = json.dumps(header, separators=(",", ":")).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
)";
  ASSERT_EQ(std::system((python + " -c '" + script + "' '" + path + "'").c_str()), 0);
  const Safetensors file = read_safetensors(path);
  std::filesystem::remove(path);
  EXPECT_EQ(file.metadata.at("format"), "pt");
  EXPECT_EQ(to_f64(get(file.tensors, "q")), (std::vector<double>{-1, -0.75, -0.5, -0.25, 0, 0.25}));
  EXPECT_EQ(get(file.tensors, "q").dtype(), DType::bf16);
  EXPECT_EQ(get(file.tensors, "q").shape(), (Shape{3, 2}));
  EXPECT_EQ(to_f64(get(file.tensors, "cu_seqlens")), (std::vector<double>{0, 1, 3}));
  EXPECT_EQ(to_f64(get(file.tensors, "half")), (std::vector<double>{0.5, -2}));
  EXPECT_EQ(to_f64(get(file.tensors, "mask")), (std::vector<double>{1, 0}));
  EXPECT_EQ(to_f64(get(file.tensors, "g")), (std::vector<double>{-1, -1, -1}));
}

TEST(Safetensors, says_what_is_wrong_with_a_hostile_file) {
  const auto entry = [](const std::string& dtype, const std::string& shape, const std::string& offsets) {
    return "{\"t\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + offsets + "}}";
  };
  const std::string good = entry("F32", "[1]", "[0,4]"), four(4, 'x');
  ASSERT_EQ(error_of(with_header(good, four)), "");
  std::string huge_length = with_header(good, four), over_limit = huge_length;
  huge_length[2] = 1;
  std::memset(over_limit.data(), 0xff, 8);
  const std::string two =
      "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
      "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":";
  const struct {
    const char* why;
    std::string file, message;
  } kHostile[] = {
      {"no bytes", "", "got 0 bytes"},
      {"no header", "1234567", "got 7 bytes"},
      {"header beyond the file", huge_length, "truncated or not safetensors"},
      {"header beyond the limit", over_limit, "at most 100000000 bytes"},
      {"not an object", with_header("[1]"), "starts with {"},
      {"leading space", with_header(" {}"), "starts with {"},
      {"NUL", with_header(std::string("{}\0garbage", 10)), "NUL"},
      {"not JSON", with_header("{\"t\":"), "invalid JSON"},
      {"more than one value", with_header("{}{}"), "invalid JSON"},
      {"not UTF-8", with_header("{\"\xff\":{}}"), "invalid JSON or UTF-8"},
      {"deep nesting", with_header("{\"t\":" + std::string(1000000, '[')), "got an array after \"t\""},
      {"deep objects", with_header("{\"t\":{\"shape\":{\"x\":{}}}}"), "got an object"},
      {"a number for a tensor", with_header("{\"t\":1}"), "got a number"},
      {"missing fields", with_header("{\"t\":{\"dtype\":\"F32\"}}"), "\"t\": expected dtype, shape and data_offsets"},
      {"unknown field", with_header("{\"t\":{\"stride\":[1]}}"), "got \"stride\""},
      {"field twice", with_header("{\"t\":{\"dtype\":\"F32\",\"dtype\":\"F16\"}}"), "once each, got \"dtype\""},
      {"name twice", with_header(good.substr(0, good.size() - 1) + "," + good.substr(1), four), "\"t\" stands twice"},
      {"metadata twice", with_header("{\"__metadata__\":{},\"__metadata__\":{}}"), "stands twice"},
      {"metadata that is not text", with_header("{\"__metadata__\":{\"a\":1}}"), "got a number"},
      {"unknown dtype", with_header(entry("F8_E4M3", "[1]", "[0,1]"), "x"), "got \"F8_E4M3\""},
      {"negative shape", with_header(entry("F32", "[-1]", "[0,4]"), four), "a negative number"},
      {"fractional shape", with_header(entry("F32", "[1.0]", "[0,4]"), four), "not a 64-bit integer"},
      {"shape beyond 64 bits", with_header(entry("F32", "[18446744073709551616]", "[0,4]"), four), "not a 64-bit integer"},
      {"overflowing shape", with_header(entry("F32", "[4294967296,4294967296,4294967296]", "[0,4]"), four), "overflows"},
      {"overflow to zero", with_header(entry("F32", "[4611686018427387904,4]", "[0,0]")), "overflows"},
      {"overflow beside an empty dimension", with_header(entry("F32", "[0,9223372036854775807,9]", "[0,0]")), "overflows"},
      {"too many dimensions", with_header(entry("F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]"), four), "at most 8 dimensions"},
      {"size differs", with_header(entry("F32", "[2]", "[0,4]"), four), "expected 8 bytes from dtype and shape"},
      {"one offset", with_header(entry("F32", "[1]", "[0]"), four), "expected two data_offsets, got 1"},
      {"offsets reversed", with_header(entry("F32", "[1]", "[4,0]"), four), "leave the 4 bytes"},
      {"offsets out of range", with_header(entry("F32", "[1]", "[0,18446744073709551615]"), four), "leave the 4 bytes"},
      {"a hole at the start", with_header(entry("F32", "[1]", "[4,8]"), four + four), "expected data_offsets from 0, got 4"},
      {"bytes left over", with_header(good, four + "x"), "expected 4 bytes of data, got 5"},
      {"truncated data", with_header(good, "xxx"), "leave the 3 bytes"},
      {"overlap", with_header(two + "[0,4]}}", four), "overlap or leave a hole"},
      {"partial overlap", with_header(two + "[2,6]}}", four + "xx"), "expected data_offsets from 4, got 2"},
      {"a hole between", with_header(two + "[8,12]}}", four + four + four), "expected data_offsets from 4, got 8"},
  };
  for (const auto& hostile : kHostile) {
    const std::string error = error_of(hostile.file);
    EXPECT_NE(error.find(hostile.message), std::string::npos) << hostile.why << ": " << error;
    EXPECT_LT(error.size(), 400u) << hostile.why;
  }
}

TEST(Safetensors, refuses_paths_that_are_not_files) {
  EXPECT_THROW(read_safetensors("/nonexistent/f.safetensors"), Error);
  EXPECT_THROW(read_safetensors("/tmp"), Error);
  EXPECT_THROW(read_safetensors("/dev/zero"), Error);
}

// Seeded damage to a valid file: bytes set, cut off, moved, inserted; header lengths and digits are hit on purpose.
std::string damaged(const std::string& valid, std::mt19937_64& draw) {
  std::string file = valid;
  const auto below = [&](std::size_t n) { return n ? draw() % n : 0; };
  std::uint64_t header = 0;
  std::memcpy(&header, valid.data(), 8);
  for (std::size_t hits = 1 + below(4); hits-- > 0 && !file.empty();) {
    const std::size_t at = below(below(2) ? file.size() : std::min<std::size_t>(file.size(), 8 + header));
    switch (below(7)) {
      case 0:
        file[at] = static_cast<char>(draw());
        break;
      case 1:
        file[at] = static_cast<char>(file[at] ^ (1 << below(8)));
        break;
      case 2:
        file.resize(at);
        break;
      case 3:
        file.insert(at, valid.substr(below(valid.size()), below(64)));
        break;
      case 4:
        file.erase(at, below(64));
        break;
      case 5:
        file[at] = "0123456789-.eE{}[]\",:"[below(21)];
        break;
      case 6:
        for (std::size_t i = at; i < file.size() && i < at + 12; ++i)
          if (file[i] >= '0' && file[i] <= '9') file[i] = static_cast<char>('0' + below(10));
    }
  }
  return file;
}

TEST(Safetensors, survives_thousands_of_damaged_files) {
  const std::string valid = to_safetensors(sample()), small = to_safetensors({{{"t", Tensor(DType::f32, {1})}}, {}});
  const std::string path = testing::TempDir() + "fuzz_" + std::to_string(::getpid()) + ".safetensors";
  std::mt19937_64 draw(20240117);
  int refused = 0, read = 0;
  for (int i = 0; i < 20000; ++i) {
    const std::string file = damaged(i % 3 ? valid : small, draw);
    const bool mapped = i % 20 == 0;
    if (mapped) reports::write_file(path, file);
    try {
      const Safetensors content = mapped ? read_safetensors(path) : parse(file);
      std::size_t total = 0;
      for (const auto& [name, tensor] : content.tensors) total += tensor.nbytes();
      EXPECT_LE(total, file.size());
      ++read;
    } catch (const Error&) {
      ++refused;
    }
  }
  std::filesystem::remove(path);
  EXPECT_GT(refused, read);  // damage to data bytes alone leaves a valid file
  EXPECT_GT(read, 0);
}

}  // namespace
}  // namespace deltagauge::validate
