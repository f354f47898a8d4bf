#include "reports/build_info.h"

#include <sys/utsname.h>

#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include "deltagauge_build_info.h"

namespace deltagauge::reports {
namespace {

// The text after the separator on the first line of a file that starts with key; empty when there is none.
std::string field(const char* path, std::string_view key, char separator) {
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    if (!line.starts_with(key)) continue;
    const auto start = line.find_first_not_of(" \t\"", line.find(separator) + 1);
    const auto end = line.find_last_not_of(" \t\"");
    return start == std::string::npos ? "" : line.substr(start, end - start + 1);
  }
  return "";
}

}  // namespace

Tool this_tool() {
  Tool tool{DELTAGAUGE_VERSION, DELTAGAUGE_GIT_SHA, DELTAGAUGE_GIT_DIRTY, DELTAGAUGE_COMPILER, {}};
  std::istringstream archs(DELTAGAUGE_ARCHS);
  for (std::string arch; archs >> arch;) tool.cuda_archs.push_back(arch);
  return tool;
}

Host this_host() {
  utsname system{};
  ::uname(&system);
  Host host;
  host.os = field("/etc/os-release", "PRETTY_NAME=", '=');
  if (host.os.empty()) host.os = std::string(system.sysname) + " " + system.release;
  host.cpu = field("/proc/cpuinfo", "model name", ':');
  if (host.cpu.empty()) host.cpu = system.machine;
  host.threads = static_cast<int>(std::thread::hardware_concurrency());
  return host;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  ::gmtime_r(&now, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S+00:00", &utc)};
}

}  // namespace deltagauge::reports
