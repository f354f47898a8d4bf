#include "reports/formats/text.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

#include "reports/sha256.h"

namespace deltagauge::reports::formats {
namespace {

constexpr std::string_view kReplacement = "\xef\xbf\xbd";  // U+FFFD
constexpr std::size_t kLongestName = 1024;                 // Bencher refuses a whole upload with a longer one

bool noncharacter(std::string_view three) { return three == "\xef\xbf\xbe" || three == "\xef\xbf\xbf"; }

}  // namespace

std::string clean(std::string_view text) {
  // The JSON library decides what is UTF-8: its writer replaces the rest, its reader undoes the escapes.
  using Json = nlohmann::json;
  const std::string utf8 = Json::parse(Json(text).dump(-1, ' ', false, Json::error_handler_t::replace)).get<std::string>();
  std::string out;
  for (std::size_t i = 0; i < utf8.size(); ++i) {
    const auto c = static_cast<unsigned char>(utf8[i]);
    if (c < 0x20 && c != '\t' && c != '\n' && c != '\r') {
      out += kReplacement;
    } else if (noncharacter(std::string_view(utf8).substr(i, 3))) {
      out += kReplacement;
      i += 2;
    } else {
      out += utf8[i];
    }
  }
  return out;
}

std::string escaped(std::string_view text, std::initializer_list<std::pair<char, std::string_view>> substitutes) {
  std::string out;
  for (const char c : clean(text)) {
    std::string_view written(&c, 1);
    for (const auto& [from, to] : substitutes)
      if (from == c) written = to;
    out += written;
  }
  return out;
}

std::string number(double x) {
  if (std::isnan(x)) return "nan";  // whatever its sign
  return fmt::format("{}", x);
}

std::string benchmark_name(const Result& result) {
  const std::string name = clean(result.test + "/" + result.backend + "/" + result.check);
  return name.size() <= kLongestName ? name : clean(name.substr(0, kLongestName - 32)) + "~" + sha256(name).substr(0, 16);
}

Report with_unfinished(Report report) {
  if (!report.jobs_left) return report;
  Result& row = report.results.emplace_back();
  row.test = "unfinished";
  row.backend = "deltagauge";
  row.check = "run";
  row.outcome = Outcome::error;
  row.reason = fmt::format("{} jobs left", report.jobs_left);
  return report;
}

std::string config_of(const Report& report, const Result& result) {
  if (report.configs.size() == 1) return report.configs[0].path;
  std::vector<std::string> candidates;
  for (const ConfigFile& config : report.configs)
    if (("/" + config.path).find("/" + result.op + "/") != std::string::npos) candidates.push_back(config.path);
  return candidates.size() == 1 ? candidates[0] : "";
}

}  // namespace deltagauge::reports::formats
