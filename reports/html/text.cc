#include "reports/html/text.h"

#include <fmt/format.h>

#include <cmath>
#include <cstdint>

#include "reports/sha256.h"

namespace deltagauge::reports::html {
namespace {

struct Character {
  std::uint32_t code = 0;
  std::size_t bytes = 0;  // 0: no valid UTF-8 starts here
};

Character decode(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  const std::size_t size = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || s.size() < size) return {};
  std::uint32_t code = lead & (0xffu >> (size + 1));
  for (std::size_t i = 1; i < size; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3fu);
  }
  constexpr std::uint32_t kSmallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kSmallest[size] || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff)) return {};
  return {code, size};
}

bool changes_direction(std::uint32_t c) {
  return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

}  // namespace

std::string visible(std::string_view bytes) {
  std::string out;
  while (!bytes.empty()) {
    const Character c = decode(bytes);
    if (c.bytes == 0)
      out += "\ufffd";
    else if (c.code == 0x7f)
      out += "\u2421";
    else if (c.code < 0x20 && c.code != '\n' && c.code != '\t')
      out += {'\xe2', '\x90', static_cast<char>(0x80 + c.code)};  // U+2400 + code
    else if ((c.code >= 0x80 && c.code < 0xa0) || changes_direction(c.code))
      out += fmt::format("\\u{:04x}", c.code);
    else
      out += bytes.substr(0, c.bytes);
    bytes.remove_prefix(c.bytes ? c.bytes : 1);
  }
  return out;
}

std::string shortened(std::string_view bytes, std::size_t most) {
  if (bytes.size() <= most) return std::string(bytes);
  while (most > 0 && (static_cast<unsigned char>(bytes[most]) & 0xc0) == 0x80) --most;
  return std::string(bytes.substr(0, most)) + "\u2026";
}

std::string escape(std::string_view bytes) {
  std::string out;
  for (const char c : visible(bytes)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\'':
        out += "&#39;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t j = 0; j < 3; ++j)
      group = group << 8 | (i + j < bytes.size() ? static_cast<unsigned char>(bytes[i + j]) : 0u);
    for (std::size_t j = 0; j < 4; ++j) out += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63u];
  }
  return out;
}

std::string csp_hash(std::string_view content) {
  const std::string hex = sha256(content);
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) bytes += static_cast<char>(std::stoi(hex.substr(i, 2), nullptr, 16));
  return "'sha256-" + base64(bytes) + "'";
}

std::string number(double x) {
  const double size = std::abs(x);
  if (size >= 1e3 && size < 1e6) return fmt::format("{:.0f}", x);
  return size != 0 && size < 1e-2 ? fmt::format("{:.2e}", x) : fmt::format("{:.4g}", x);
}

std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return us >= 1e4 ? fmt::format("{:.0f}", us) : fmt::format("{:.4g}", us);
}

std::string power_of_two(double x) {
  if (!std::isfinite(x) || x == 0) return fmt::format("{}", x);
  int exponent = 0;
  const double significand = 2 * std::frexp(x, &exponent);
  if (significand == 1) return fmt::format("2^{}", exponent - 1);
  return fmt::format("{:.3g} \u00d7 2^{}", significand, exponent - 1);
}

std::string count(std::int64_t n, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", n, n == 1 ? one : many);
}

}  // namespace deltagauge::reports::html
