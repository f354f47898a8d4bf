#include "reports/file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"

namespace deltagauge::reports {
namespace fs = std::filesystem;

std::string read_file(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) fail(path, ": expected a file, got a directory");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail(path, ": cannot read: ", std::strerror(errno));
  std::string content{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) fail(path, ": reading failed");
  return content;
}

void write_file(const std::string& path, std::string_view content) {
  const std::string temporary = path + ".tmp" + std::to_string(::getpid());
  std::ofstream out(temporary, std::ios::binary | std::ios::trunc);
  if (!out) fail(path, ": cannot write: ", std::strerror(errno));
  out.write(content.data(), static_cast<std::streamsize>(content.size()));
  out.close();
  std::error_code problem;
  if (!out)
    problem = std::make_error_code(std::errc::io_error);
  else
    fs::rename(temporary, path, problem);
  if (problem) {
    std::error_code ignored;
    fs::remove(temporary, ignored);
    fail(path, ": cannot write: ", problem.message());
  }
}

void require_writable_directory(const std::string& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) fail(path, ": cannot make the directory: ", problem.message());
  if (!fs::is_directory(path)) fail(path, ": expected a directory, got a file");
  if (::access(path.c_str(), W_OK | X_OK) != 0) fail(path, ": cannot write into the directory: ", std::strerror(errno));
}

}  // namespace deltagauge::reports
