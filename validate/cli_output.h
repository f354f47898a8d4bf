// What the terminal can take, and the progress line.
#pragma once
#include <chrono>
#include <cstddef>

#include "reports/table.h"

namespace deltagauge::validate::cli {

// Width and colour of stdout: no limit and none when it is not a terminal, no colour when NO_COLOR is set and not empty.
reports::TableStyle stdout_style();

// One line on stderr, rewritten in place, with an estimate of the time left. Silent when stderr is not a terminal.
class Progress {
 public:
  explicit Progress(std::size_t total);
  void step(const reports::Result& result);  // one more is done
  void clear();                              // wipes the line

 private:
  std::size_t total_, done_ = 0, failed_ = 0;
  bool shown_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now(), drawn_{};
};

}  // namespace deltagauge::validate::cli
