// The report of a run that has not ended, kept in FILE.partial beside every JSON report to come: what a run whose process
// died leaves for --resume.
#pragma once
#include <chrono>
#include <string>
#include <vector>

#include "reports/report.h"

namespace deltagauge::validate {

class PartialReport {
 public:
  // For those of these files that are regular or not there yet. A device or a FIFO has none.
  explicit PartialReport(const std::vector<std::string>& files,
                         std::chrono::steady_clock::duration every = std::chrono::seconds(30));
  void update(const reports::Report& so_far);  // writes when there is none yet, or after that time; throws Error
  void remove();                               // the whole report is written

 private:
  std::vector<std::string> paths_;
  std::chrono::steady_clock::duration every_;
  std::chrono::steady_clock::time_point written_{};
};

}  // namespace deltagauge::validate
