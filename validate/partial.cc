#include "validate/partial.h"

#include <filesystem>

#include "reports/file.h"
#include "reports/json.h"

namespace deltagauge::validate {

namespace fs = std::filesystem;

PartialReport::PartialReport(const std::vector<std::string>& files, std::chrono::steady_clock::duration every)
    : every_(every) {
  std::error_code ignored;
  for (const std::string& file : files)
    if (!fs::exists(file, ignored) || fs::is_regular_file(file, ignored)) paths_.push_back(file + ".partial");
}

void PartialReport::update(const reports::Report& so_far) {
  const auto now = std::chrono::steady_clock::now();
  if (paths_.empty() || (written_ != std::chrono::steady_clock::time_point{} && now - written_ < every_)) return;
  written_ = now;
  const std::string json = reports::to_json(so_far);
  for (const std::string& path : paths_) reports::write_file(path, json);
}

void PartialReport::remove() {
  std::error_code ignored;  // one that was never written is as good
  for (const std::string& path : paths_) fs::remove(path, ignored);
}

}  // namespace deltagauge::validate
