// What the terminal can take, the progress line, and what Ctrl-C does.
#pragma once
#include <chrono>
#include <cstddef>
#include <span>
#include <string>

#include "reports/table.h"

namespace deltagauge::validate::cli {

// Width and colour of stdout: no limit and none when it is not a terminal, no colour when NO_COLOR is set and not empty.
reports::TableStyle stdout_style();

// One line on stderr, rewritten in place. Silent when stderr is not a terminal.
class StatusLine {
 public:
  StatusLine();
  bool due();  // it can be seen, and the last one has stood for a tenth of a second
  void show(std::string text);
  void clear();  // wipes the line

 private:
  bool shown_, written_ = false;
  std::chrono::steady_clock::time_point drawn_{};
};

// How far a run is, with an estimate of the time left.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total) {}
  enum class Step { judged, taken_over };                      // taken over: by --resume, which takes no time
  void step(std::span<const reports::Result> rows, Step how);  // one more job is done
  void clear() { line_.clear(); }

 private:
  StatusLine line_;
  std::size_t total_, done_ = 0, judged_ = 0, failed_ = 0;  // total, done, judged: jobs; failed: rows
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

// While it lives, the first SIGINT or SIGTERM asks the run to end after its current job; the next one ends the process.
class Interrupts {
 public:
  Interrupts();
  ~Interrupts();
  Interrupts(const Interrupts&) = delete;
  Interrupts& operator=(const Interrupts&) = delete;
  static bool asked();
};

}  // namespace deltagauge::validate::cli
