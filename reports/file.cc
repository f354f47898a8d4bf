#include "reports/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/error.h"

namespace deltagauge::reports {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void cannot_write(const std::string& path, int error) { fail(path, ": cannot write: ", std::strerror(error)); }

// Writes all of content and closes. 0, or what went wrong.
int fill(int descriptor, std::string_view content) {
  int error = 0;
  while (!content.empty() && error == 0) {
    const ssize_t written = ::write(descriptor, content.data(), content.size());
    if (written >= 0)
      content.remove_prefix(static_cast<std::size_t>(written));
    else if (errno != EINTR)
      error = errno;
  }
  if (::close(descriptor) != 0 && error == 0) error = errno;
  return error;
}

// The path that a link stands for, one step on; empty when path is no link.
fs::path step(const fs::path& path) {
  std::error_code problem;
  const fs::path to = fs::read_symlink(path, problem);
  return problem ? fs::path() : path.parent_path() / to;
}

// The open descriptor of this process that path names, as /dev/stdout does, or -1.
int descriptor_of(fs::path path) {
  const fs::path own = "/proc/" + std::to_string(::getpid()) + "/fd";
  for (int links = 0; links < 40 && !path.empty(); ++links, path = step(path)) {
    std::error_code problem;
    if (fs::canonical(fs::absolute(path).parent_path(), problem) == own) return std::atoi(path.filename().c_str());
  }
  return -1;
}

// What a path stands for when it is a regular file or not there, symlinks followed, or nothing for a device, a FIFO, an
// open descriptor: those are written where they are.
struct Target {
  std::string replaceable;  // empty: open the path itself
  mode_t mode = 0666;       // of the file that is replaced
};
Target target_of(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) == 0) {
    if (!S_ISREG(status.st_mode) || descriptor_of(path) >= 0) return {};
    if (::access(path.c_str(), W_OK) != 0) cannot_write(path, errno);
    return {fs::canonical(path).string(), status.st_mode & 07777};
  }
  if (errno != ENOENT) cannot_write(path, errno);
  fs::path file = path;  // perhaps a link to a file that is not there
  for (fs::path to = step(file); !to.empty(); to = step(file)) file = to;
  return {file.string()};
}

// Where a file lies, links followed; empty where nothing would be replaced.
fs::path place_of(const std::string& path) {
  const std::string file = target_of(path).replaceable;
  return file.empty() ? fs::path() : fs::weakly_canonical(fs::absolute(file));
}

// The same path, or a folder above it.
bool holds(const fs::path& outer, const fs::path& inner) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace

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
  const Target target = target_of(path);
  if (target.replaceable.empty()) {
    const int open = descriptor_of(path);  // written where it stands: whoever holds it goes on behind
    const int descriptor = open >= 0 ? ::dup(open) : ::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
    if (descriptor < 0) cannot_write(path, errno);
    if (const int error = fill(descriptor, content)) cannot_write(path, error);
    return;
  }
  const std::string temporary =
      (fs::path(target.replaceable).parent_path() / (".deltagauge.tmp" + std::to_string(::getpid()))).string();
  const int descriptor = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, target.mode);
  if (descriptor < 0) cannot_write(path, errno);
  int error = fill(descriptor, content);
  if (error == 0 && std::rename(temporary.c_str(), target.replaceable.c_str()) != 0) error = errno;
  if (error == 0) return;
  ::unlink(temporary.c_str());
  cannot_write(path, error);
}

void append_file(const std::string& path, std::string_view content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
  if (descriptor < 0) cannot_write(path, errno);
  if (const int error = fill(descriptor, content)) cannot_write(path, error);
}

void require_writable_file(const std::string& path) {
  const Target target = target_of(path);
  if (!target.replaceable.empty()) {
    const std::string folder = fs::path(target.replaceable).parent_path().string();
    return require_writable_directory(folder.empty() ? "." : folder);
  }
  if (fs::is_directory(path)) fail(path, ": expected a file, got a directory");
  if (::access(path.c_str(), W_OK) != 0) cannot_write(path, errno);
}

void require_writable_directory(const std::string& path) {
  std::error_code problem;
  fs::create_directories(path, problem);
  if (problem) fail(path, ": cannot make the directory: ", problem.message());
  if (!fs::is_directory(path)) fail(path, ": expected a directory, got a file");
  if (::access(path.c_str(), W_OK | X_OK) != 0) fail(path, ": cannot write into the directory: ", std::strerror(errno));
}

void require_apart(const std::vector<Output>& written, const std::vector<std::string>& read) {
  std::vector<std::pair<const Output*, fs::path>> before;
  for (const Output& one : written) {
    const fs::path place = place_of(one.path);
    if (place.empty()) continue;
    for (const std::string& input : read)
      if (std::error_code none; fs::is_regular_file(input, none) && fs::canonical(input) == place)
        fail(one.flag, ": expected a file that is not read, got ", one.path);
    for (const auto& [other, taken] : before)
      if (holds(taken, place) || holds(place, taken))
        fail(one.flag, ": expected a file of its own, got ", one.path, " beside ", other->path, " of ", other->flag);
    before.emplace_back(&one, place);
  }
}

}  // namespace deltagauge::reports
