#include "validate/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "core/error.h"
#include "reports/sha256.h"

namespace deltagauge::validate {
namespace {

static_assert(std::endian::native == std::endian::little, "data is copied as it stands");

constexpr std::uint64_t kMaxHeader = 100'000'000;  // the limit of the format's own library
constexpr std::size_t kMaxRank = 8;
constexpr std::string_view kMetadata = "__metadata__";

struct TypeName {
  DType dtype;
  std::string_view text;
};
constexpr TypeName kTypes[] = {{DType::f64, "F64"}, {DType::f32, "F32"}, {DType::bf16, "BF16"},   {DType::f16, "F16"},
                               {DType::i32, "I32"}, {DType::i64, "I64"}, {DType::boolean, "BOOL"}};

// A name from the file, fit for a message: not too long, no control characters.
std::string shown(std::string_view name) {
  std::string text(name.substr(0, 60));
  for (char& c : text) c = static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return '"' + text + (name.size() > 60 ? "...\"" : "\"");
}

struct Entry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<std::uint64_t>> shape, offsets;
};

// Reads the header as a stream of events, so that JSON of any other shape stops at its first wrong token: no tree is
// built, nesting never passes three levels, and nothing is stored but what the header spells out.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
  std::string problem;  // why it stopped

  bool start_object(std::size_t) override {
    if (where_ == Where::start) return go(Where::top);
    if (where_ == Where::top_value) {
      if (key_ == kMetadata) return go(Where::metadata);
      entries.push_back({key_, {}, {}, {}});
      return go(Where::entry);
    }
    return unexpected("an object");
  }
  bool key(std::string& text) override {
    key_ = text;
    switch (where_) {
      case Where::top:
        if (!names_.emplace(key_, 0).second) return stop("the name " + shown(key_) + " stands twice");
        return go(Where::top_value);
      case Where::metadata:
        if (metadata.count(key_)) return stop("the metadata key " + shown(key_) + " stands twice");
        return go(Where::metadata_value);
      case Where::entry:
        if (key_ == "dtype" && !entries.back().dtype) return go(Where::dtype);
        if (key_ == "shape" && !entries.back().shape) return go(Where::shape);
        if (key_ == "data_offsets" && !entries.back().offsets) return go(Where::offsets);
        return stop(shown(entries.back().name) + ": expected dtype, shape and data_offsets once each, got " + shown(key_));
      default:
        return unexpected("a key");
    }
  }
  bool end_object() override {
    if (where_ == Where::entry) {
      const Entry& e = entries.back();
      if (!e.dtype || !e.shape || !e.offsets) return stop(shown(e.name) + ": expected dtype, shape and data_offsets");
      return go(Where::top);
    }
    return go(where_ == Where::metadata ? Where::top : Where::end);
  }
  bool start_array(std::size_t) override {
    if (where_ == Where::shape) return entries.back().shape.emplace(), go(Where::shape_items);
    if (where_ == Where::offsets) return entries.back().offsets.emplace(), go(Where::offset_items);
    return unexpected("an array");
  }
  bool end_array() override { return go(Where::entry); }
  bool string(std::string& text) override {
    if (where_ == Where::metadata_value) return metadata.emplace(key_, text), go(Where::metadata);
    if (where_ == Where::dtype) return entries.back().dtype = text, go(Where::entry);
    return unexpected("a string");
  }
  bool number_unsigned(std::uint64_t value) override {
    if (where_ != Where::shape_items && where_ != Where::offset_items) return unexpected("a number");
    auto& list = where_ == Where::shape_items ? entries.back().shape : entries.back().offsets;
    if (list->size() == kMaxRank) return stop(shown(entries.back().name) + ": expected at most 8 dimensions");
    list->push_back(value);
    return true;
  }
  bool number_integer(std::int64_t) override { return unexpected("a negative number"); }
  bool number_float(double, const std::string&) override { return unexpected("a number that is not a 64-bit integer"); }
  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool binary(binary_t&) override { return unexpected("binary data"); }
  bool parse_error(std::size_t at, const std::string&, const nlohmann::json::exception&) override {
    return stop("invalid JSON or UTF-8 at byte " + std::to_string(at));
  }

 private:
  enum class Where {
    start,
    top,
    top_value,
    metadata,
    metadata_value,
    entry,
    dtype,
    shape,
    shape_items,
    offsets,
    offset_items,
    end
  };
  bool go(Where next) {
    where_ = next;
    return true;
  }
  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }
  bool unexpected(const char* got) {
    return stop(std::string("expected {name: {dtype, shape, data_offsets}}, got ") + got +
                (key_.empty() ? "" : " after " + shown(key_)));
  }

  Where where_ = Where::start;
  std::string key_;
  std::map<std::string, int> names_;
};

DType parse_type(const std::string& path, const Entry& e) {
  std::string known;
  for (const TypeName& type : kTypes) {
    if (type.text == *e.dtype) return type.dtype;
    known += " " + std::string(type.text);
  }
  fail(path, ": ", shown(e.name), ": expected a dtype of", known, ", got ", shown(*e.dtype));
}

// dtype times shape, when every partial product (of the dimensions that are not 0, as strides are) fits comfortably.
std::uint64_t bytes_of(const std::string& path, const Entry& e, DType dtype) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 62;
  std::uint64_t bytes = size_of(dtype);
  bool empty = false;
  for (const std::uint64_t dim : *e.shape) {
    empty = empty || dim == 0;
    if (dim > 0 && bytes > kMost / dim) fail(path, ": ", shown(e.name), ": the size of the shape overflows");
    bytes *= std::max<std::uint64_t>(dim, 1);
  }
  return empty ? 0 : bytes;
}

}  // namespace

Safetensors parse_safetensors(std::span<const std::byte> bytes, const std::string& path) {
  if (bytes.size() < 8) fail(path, ": expected a safetensors file, got ", bytes.size(), " bytes");
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  if (length > kMaxHeader) fail(path, ": expected a header of at most ", kMaxHeader, " bytes, got ", length);
  if (length > bytes.size() - 8)
    fail(path, ": the header says ", length, " bytes, but ", bytes.size() - 8, " follow: truncated or not safetensors");
  const auto* text = reinterpret_cast<const char*>(bytes.data()) + 8;
  const std::string_view header(text, length);
  if (!header.starts_with('{')) fail(path, ": expected a header that starts with {");
  if (header.find('\0') != header.npos) fail(path, ": the header holds a NUL byte");  // the parser would end there
  HeaderReader reader;
  if (!nlohmann::json::sax_parse(header, &reader)) fail(path, ": header: ", reader.problem);

  const std::span<const std::byte> data = bytes.subspan(8 + length);
  std::sort(reader.entries.begin(), reader.entries.end(),
            [](const Entry& a, const Entry& b) { return a.offsets < b.offsets; });
  Safetensors content{
      {}, std::move(reader.metadata), reports::sha256({reinterpret_cast<const char*>(bytes.data()), bytes.size()})};
  std::uint64_t end = 0;
  for (const Entry& e : reader.entries) {
    const DType dtype = parse_type(path, e);
    const std::uint64_t size = bytes_of(path, e, dtype);
    if (e.offsets->size() != 2) fail(path, ": ", shown(e.name), ": expected two data_offsets, got ", e.offsets->size());
    const std::uint64_t first = (*e.offsets)[0], last = (*e.offsets)[1];
    if (first > last || last > data.size())
      fail(path, ": ", shown(e.name), ": data_offsets [", first, ", ", last, "] leave the ", data.size(), " bytes of data");
    if (first != end)
      fail(path, ": ", shown(e.name), ": expected data_offsets from ", end, ", got ", first,
           ": tensors overlap or leave a hole");
    if (last - first != size)
      fail(path, ": ", shown(e.name), ": expected ", size, " bytes from dtype and shape, got data_offsets over ",
           last - first);
    end = last;
    Tensor tensor(dtype, Shape(e.shape->begin(), e.shape->end()));
    std::copy_n(data.data() + first, size, tensor.data());
    content.tensors.emplace(e.name, std::move(tensor));
  }
  if (end != data.size()) fail(path, ": expected ", end, " bytes of data, got ", data.size());
  return content;
}

Safetensors read_safetensors(const std::string& path) {
  struct File {
    int descriptor;
    void* map = MAP_FAILED;
    std::size_t size = 0;
    ~File() {
      if (map != MAP_FAILED) ::munmap(map, size);
      if (descriptor >= 0) ::close(descriptor);
    }
  } file{::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
  struct stat status {};
  if (file.descriptor < 0 || ::fstat(file.descriptor, &status) != 0) fail(path, ": cannot read: ", std::strerror(errno));
  if (!S_ISREG(status.st_mode)) fail(path, ": expected a regular file");
  file.size = static_cast<std::size_t>(status.st_size);
  if (file.size == 0) return parse_safetensors({}, path);  // an empty file cannot be mapped
  file.map = ::mmap(nullptr, file.size, PROT_READ, MAP_PRIVATE, file.descriptor, 0);
  if (file.map == MAP_FAILED) fail(path, ": cannot map: ", std::strerror(errno));
  return parse_safetensors({static_cast<const std::byte*>(file.map), file.size}, path);
}

std::string to_safetensors(const Safetensors& content) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!content.metadata.empty()) header[std::string(kMetadata)] = content.metadata;
  std::vector<const std::pair<const std::string, Tensor>*> order;  // widest dtypes first, so that every tensor is aligned
  for (const auto& entry : content.tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return size_of(a->second.dtype()) > size_of(b->second.dtype()); });
  std::string data;
  for (const auto* entry : order) {
    const auto& [name, tensor] = *entry;
    const Tensor flat = tensor.contiguous() ? tensor : cast(tensor, tensor.dtype());
    const auto* type =
        std::find_if(std::begin(kTypes), std::end(kTypes), [&](const TypeName& t) { return t.dtype == flat.dtype(); });
    const std::size_t first = data.size();
    data.append(reinterpret_cast<const char*>(flat.data()), flat.nbytes());
    header[name] = {{"dtype", type->text}, {"shape", flat.shape()}, {"data_offsets", {first, data.size()}}};
  }
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + text + data;
}

}  // namespace deltagauge::validate
