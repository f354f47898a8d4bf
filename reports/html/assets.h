// Files embedded at build time (embed.cmake). The three of uPlot are empty in a build without npm.
#pragma once
#include <string_view>

namespace deltagauge::reports::html {

extern const std::string_view kPageCss, kPageJs, kUplotCss, kUplotJs, kUplotLicense;

}  // namespace deltagauge::reports::html
