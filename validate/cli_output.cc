#include "validate/cli_output.h"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iterator>
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

constexpr int kSignals[] = {SIGINT, SIGTERM};
volatile std::sig_atomic_t g_asked = 0;
struct sigaction g_before[2];

void take_note(int) {
  g_asked = 1;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &g_before[i], nullptr);
  constexpr char kText[] = "\ndeltagauge: ends after the current job; once more to end at once\n";
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, kText, sizeof kText - 1);
}

}  // namespace

reports::TableStyle stdout_style() {
  if (!::isatty(STDOUT_FILENO)) return {};
  const char* no_colour = std::getenv("NO_COLOR");
  return {.width = width_of(STDOUT_FILENO), .colour = !(no_colour && *no_colour)};
}

StatusLine::StatusLine() : shown_(::isatty(STDERR_FILENO)) {}

bool StatusLine::due() { return shown_ && std::chrono::steady_clock::now() - drawn_ >= std::chrono::milliseconds(100); }

void StatusLine::show(std::string text) {
  if (!shown_) return;
  drawn_ = std::chrono::steady_clock::now();
  written_ = true;
  text.resize(static_cast<std::size_t>(width_of(STDERR_FILENO) - 1), ' ');
  std::fprintf(stderr, "\r%s", text.c_str());
  std::fflush(stderr);
}

void StatusLine::clear() {
  if (written_) std::fputs("\r\x1b[K", stderr);
  written_ = false;
}

void Progress::step(std::span<const reports::Result> rows, Step how) {
  ++done_;
  judged_ += how == Step::judged;
  for (const reports::Result& row : rows)
    failed_ += row.outcome == reports::Outcome::fail || row.outcome == reports::Outcome::error;
  if (rows.empty() || (done_ < total_ && !line_.due())) return;
  const double spent = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  const std::string left = judged_ ? fmt::format(", about {} left", duration(spent / static_cast<double>(judged_) *
                                                                             static_cast<double>(total_ - done_)))
                                   : "";
  line_.show(fmt::format("{}/{}, {} failed{}  {} {}  {}", done_, total_, failed_, left, rows[0].backend, rows[0].check,
                         rows[0].test));
}

Interrupts::Interrupts() {
  g_asked = 0;
  for (std::size_t i = 0; i < std::size(kSignals); ++i) {
    struct sigaction on {};
    on.sa_handler = take_note;
    on.sa_flags = SA_RESTART;
    ::sigaction(kSignals[i], nullptr, &g_before[i]);
    if (g_before[i].sa_handler != SIG_IGN) ::sigaction(kSignals[i], &on, nullptr);  // as nohup and & ask
  }
}

Interrupts::~Interrupts() {
  for (std::size_t i = 0; i < std::size(kSignals); ++i) ::sigaction(kSignals[i], &g_before[i], nullptr);
}

bool Interrupts::asked() { return g_asked != 0; }

}  // namespace deltagauge::validate::cli
