// Text from reports and configs as a terminal may get it: control characters (and the C1 set in UTF-8) as \xNN, so that a
// name can neither move the cursor nor forge a line.
#pragma once
#include <string>
#include <string_view>

namespace deltagauge::reports {

inline std::string printable(std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto c = static_cast<unsigned char>(text[i]);
    const auto next = i + 1 < text.size() ? static_cast<unsigned char>(text[i + 1]) : 0;
    const bool c1 = c == 0xc2 && next >= 0x80 && next < 0xa0;
    if (c >= 0x20 && c != 0x7f && !c1) {
      out += text[i];
      continue;
    }
    const unsigned char shown = c1 ? next : c;
    out += {'\\', 'x', kHex[shown >> 4], kHex[shown & 15]};
    i += c1;
  }
  return out;
}

}  // namespace deltagauge::reports
