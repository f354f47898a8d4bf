#include "validate/cli_output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace deltagauge::validate::cli {
namespace {

int width_of(int descriptor) {
  winsize size{};
  return ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

std::string duration(double seconds) {
  const auto s = static_cast<long>(seconds + 0.5);
  if (s < 60) return fmt::format("{}s", s);
  return s < 3600 ? fmt::format("{}m{:02}s", s / 60, s % 60) : fmt::format("{}h{:02}m", s / 3600, s / 60 % 60);
}

}  // namespace

reports::TableStyle stdout_style() {
  if (!::isatty(STDOUT_FILENO)) return {};
  const char* no_colour = std::getenv("NO_COLOR");
  return {.width = width_of(STDOUT_FILENO), .colour = !(no_colour && *no_colour)};
}

Progress::Progress(std::size_t total) : total_(total), shown_(::isatty(STDERR_FILENO)) {}

void Progress::step(const reports::Result& result) {
  ++done_;
  failed_ += result.outcome == reports::Outcome::fail || result.outcome == reports::Outcome::error;
  const auto now = std::chrono::steady_clock::now();
  if (!shown_ || (done_ < total_ && now - drawn_ < std::chrono::milliseconds(100))) return;
  drawn_ = now;
  const double spent = std::chrono::duration<double>(now - start_).count();
  const double left = spent / static_cast<double>(done_) * static_cast<double>(total_ - done_);
  std::string line = fmt::format("{}/{}, {} failed, about {} left  {} {}  {}", done_, total_, failed_, duration(left),
                                 result.backend, result.check, result.test);
  line.resize(static_cast<std::size_t>(width_of(STDERR_FILENO) - 1), ' ');
  std::fprintf(stderr, "\r%s", line.c_str());
  std::fflush(stderr);
}

void Progress::clear() {
  if (shown_ && done_) std::fputs("\r\x1b[K", stderr);
}

}  // namespace deltagauge::validate::cli
