#include "validate/isolate.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <csignal>
#include <cstring>
#include <sstream>
#include <utility>

#include "core/error.h"
#include "reports/json.h"

namespace deltagauge::validate {
namespace {

using Clock = std::chrono::steady_clock;
constexpr char kEndOfRows = '\0';  // JSON text holds none

// Between fork and exec: only what a signal handler may do. An interrupt is the parent's to take, and a dead parent's worker
// has nobody to work for.
[[noreturn]] void become(char* const* argv, int descriptor, pid_t parent) {
  ::signal(SIGINT, SIG_IGN);
  ::signal(SIGTERM, SIG_IGN);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::fcntl(descriptor, F_SETFD, 0);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // stdout is the report's
  if (::getppid() == parent) ::execv("/proc/self/exe", argv);
  ::_exit(127);
}

std::string seconds_text(double seconds) {
  std::ostringstream text;
  text << seconds;
  return text.str();
}

std::string how_it_ended(int status) {
  if (WIFSIGNALED(status)) {
    const char* name = ::sigabbrev_np(WTERMSIG(status));
    return "crashed: " + (name ? "SIG" + std::string(name) : "signal " + std::to_string(WTERMSIG(status)));
  }
  return "crashed: its process ended with exit status " + std::to_string(WEXITSTATUS(status));
}

}  // namespace

Workers::Workers(WorkerCommand command, double timeout) : command_(std::move(command)), timeout_(timeout) {}

Workers::~Workers() { end(); }

void Workers::start(const std::vector<std::size_t>& batch) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) fail("worker: no pipe: ", std::strerror(errno));
  std::string task = std::to_string(ends[1]) + ":";
  for (std::size_t i = 0; i < batch.size(); ++i) task += (i ? "," : "") + std::to_string(batch[i]);
  std::vector<std::string> words = command_(task);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = ::getpid();
  process_ = ::fork();
  const int error = errno;
  if (process_ == 0) become(argv.data(), ends[1], parent);
  ::close(ends[1]);
  pipe_ = ends[0];
  if (process_ < 0) {
    end();
    fail("worker: no process: ", std::strerror(error));
  }
  pending_.assign(batch.rbegin(), batch.rend());
}

int Workers::end() {
  int status = 0;
  if (process_ > 0) {
    ::kill(process_, SIGKILL);  // one that is ending already keeps its status
    while (::waitpid(process_, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (pipe_ >= 0) ::close(pipe_);
  process_ = pipe_ = -1;
  buffer_.clear();
  pending_.clear();
  return status;
}

Workers::Got Workers::receive(std::string& rows) {
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_);
  for (;;) {
    if (const auto at = buffer_.find(kEndOfRows); at != std::string::npos) {
      rows = buffer_.substr(0, at);
      buffer_.erase(0, at + 1);
      return Got::rows;
    }
    int wait = -1;
    if (timeout_ > 0) {
      const double left = std::chrono::duration<double, std::milli>(deadline - Clock::now()).count();
      if (left <= 0) return Got::nothing;
      wait = static_cast<int>(std::min(left + 1, 1e6));
    }
    pollfd ready{pipe_, POLLIN, 0};
    if (::poll(&ready, 1, wait) <= 0) continue;  // interrupted, or time to look at the clock
    char bytes[1 << 16];
    const ssize_t got = ::read(pipe_, bytes, sizeof bytes);
    if (got == 0) return Got::end;
    if (got > 0) buffer_.append(bytes, static_cast<std::size_t>(got));
  }
}

std::vector<reports::Result> Workers::run(const std::vector<std::size_t>& batch, NamedJob job) {
  const auto start_of_job = Clock::now();
  std::string reason;
  try {
    if (pending_.empty() || pending_.back() != batch.at(0)) {
      end();
      start(batch);
    }
    pending_.pop_back();
    std::string text;
    switch (receive(text)) {
      case Got::rows: {
        std::vector<reports::Result> got = reports::parse_report(text, "worker").results;
        const std::string name = got.empty() ? "none" : reports::job_of(got[0]);
        if (name != job.name)
          fail("worker: expected the rows of ", job.name, ", got ", name, ": did a config change meanwhile?");
        const bool broken =
            std::any_of(got.begin(), got.end(), [](const auto& row) { return row.outcome == reports::Outcome::error; });
        if (broken || pending_.empty()) end();
        return got;
      }
      case Got::end:
        reason = how_it_ended(end());
        break;
      case Got::nothing:
        end();
        reason = "no answer within " + seconds_text(timeout_) + " s";
        break;
    }
  } catch (const Error& e) {
    end();
    reason = e.what();
  }
  for (reports::Result& row : job.rows) {
    row.outcome = reports::Outcome::error;
    row.reason = reason;
    row.seconds = std::chrono::duration<double>(Clock::now() - start_of_job).count();
  }
  return std::move(job.rows);
}

WorkerTask worker_task(std::string_view word) {
  const auto number = [&](std::string_view text) {
    std::size_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size())
      fail("worker: expected FD:N,N,..., got '", word, "'");
    return value;
  };
  const auto colon = word.find(':');
  WorkerTask task;
  task.descriptor = static_cast<int>(number(word.substr(0, colon)));
  std::string_view rest = colon == std::string_view::npos ? std::string_view() : word.substr(colon + 1);
  for (;;) {
    const auto comma = rest.find(',');
    task.numbers.push_back(number(rest.substr(0, comma)));
    if (comma == std::string_view::npos) return task;
    rest.remove_prefix(comma + 1);
  }
}

void send_rows(const WorkerTask& task, std::span<const reports::Result> rows) {
  reports::Report report;
  report.results.assign(rows.begin(), rows.end());
  std::string text = reports::to_json(report) + kEndOfRows;
  for (std::string_view left = text; !left.empty();) {
    const ssize_t sent = ::write(task.descriptor, left.data(), left.size());
    if (sent < 0 && errno != EINTR) fail("worker: cannot write its rows: ", std::strerror(errno));
    if (sent > 0) left.remove_prefix(static_cast<std::size_t>(sent));
  }
}

}  // namespace deltagauge::validate
