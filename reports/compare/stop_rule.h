// When a measurement has enough samples: the two criteria of NVIDIA/nvbench as its docs/cli_help.md describes them.
//   stdrel   the relative standard deviation of the samples is under 0.5 %, or has itself stopped moving: over 64 or more
//            values it differs from its latest by less than 5 %, asked every 16 samples. Not before 0.5 s of device time.
//   entropy  the entropy of the samples seen so far, H_n = -sum p log2 p over distinct values, is flat: the line through the
//            last 299 H_n (abscissa 0, 1, 2, ...) rises by at most 0.048 degrees and explains at least 0.36 of the
//            variance, asked every 2 samples. Timer resolution makes values repeat.
// Neither settles before 10 samples; 15 s of wall time end both.
#pragma once
#include <cstdint>
#include <deque>
#include <map>

namespace deltagauge::reports::compare {

enum class Criterion { stdrel, entropy };
enum class Stop { more, settled, timeout };

struct StopOptions {
  Criterion criterion = Criterion::stdrel;
  std::int64_t min_samples = 10;
  std::int64_t calls = 1;    // a sample is the mean of so many calls
  double max_noise = 0.005;  // stdrel: relative standard deviation
  double min_time = 0.5;     // stdrel: seconds of device time
  double max_angle = 0.048;  // entropy: degrees
  double min_r2 = 0.36;      // entropy
  double timeout = 15;       // seconds of wall time
};

class StopRule {
 public:
  explicit StopRule(const StopOptions& options = {}) : options_(options) {}

  // One sample in seconds and the wall time since the first began. Throws Error when it is not a positive number.
  Stop add(double sample, double elapsed);

  std::int64_t samples() const { return count_; }

 private:
  bool quiet();
  bool flat() const;

  StopOptions options_;
  std::int64_t count_ = 0;
  double time_ = 0, mean_ = 0, squares_ = 0;  // device time; running mean and sum of squared deviations
  std::deque<double> noise_;                  // relative deviation after each sample, the last 512
  std::map<double, std::int64_t> seen_;
  double weighted_ = 0;         // sum of c log2 c over the counts of seen_
  std::deque<double> entropy_;  // the last 299
};

}  // namespace deltagauge::reports::compare
