// SHA-256 (FIPS 180-4) of bytes, for the configs a report names. Written out here because one hash of small files is the
// only use: a crypto library would be one more package to install and one more dependency of the exported targets.
#pragma once
#include <string>
#include <string_view>

namespace deltagauge::reports {

std::string sha256(std::string_view bytes);  // 64 lower-case hexadecimal digits

}  // namespace deltagauge::reports
