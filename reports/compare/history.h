// The history of timings: an append-only file of JSON lines, one a bench row that passed, and the search for changes in it.
//   {"commit", "date", "device", "sm", "driver", "case", "backend", "check", "median", "q1", "q3", "samples", "sm_mhz",
//    "memory_mhz"}
// Times in seconds; clocks are those while measuring, null when not known. A commit of a dirty tree ends in "+".
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reports/report.h"

namespace deltagauge::reports::compare {

struct HistoryLine {
  std::string commit, date, device;
  int sm = 0, driver = 0;
  std::string test, backend, check;
  double median = 0, q1 = 0, q3 = 0;
  std::int64_t samples = 0;
  std::optional<double> sm_mhz, memory_mhz;
};

// Adds a report's rows in one write at the end of the file, which is made when it is not there. Date: as ISO 8601, so that
// text order is time order. Throws Error when the file is damaged (as load does), when it has this commit, device and date
// already, and when the report has no timing or no device.
void append(const std::string& path, const Report& report, const std::string& date);

// Throws Error "path:line: ..." on a line that is not such an object, and on a last line without its end, which is what an
// interrupted write leaves.
std::vector<HistoryLine> load(const std::string& path);

// One row of the sweep through time on one device. Lines of the same commit are sessions of one build: they make one point,
// whose time is the median of theirs, where the first of them stood.
struct Point {
  std::string commit, date;
  double time = 0;
  std::int64_t sessions = 0;
};
struct Series {
  std::string device, test, backend, check;
  std::vector<Point> points;  // in the order of the file
};
std::vector<Series> series(std::span<const HistoryLine> lines);

struct ChangeOptions {
  double p_limit = 0.001;
  double floor = 0.01;           // smallest relative change
  std::size_t least_points = 4;  // on either side
};
struct ChangePoint {
  std::size_t at = 0;  // the first point after the change
  double ratio = 1;    // after / before, of geometric means up to the neighbouring changes
  double p = 1;
};

// Where the level of a series of times changes. Segments are split where Student's t between their two parts (of log times)
// is largest, as long as they have points for it; then each split is tested between its neighbours and the weakest taken out
// until all are significant and large enough; those that stay move to the best place between their neighbours. Splitting
// first and judging later finds a slowdown that passes, whose two ends hide each other from a single split. So does Hunter
// (Fleming et al., "Hunter: using change point detection to hunt for performance regressions", 2023), which puts t tests in
// place of the permutations of E-divisive (Matteson and James, "A nonparametric approach for multiple change point analysis
// of multivariate data", 2014), hence is deterministic. The p is multiplied by the number of points, the places where a
// change could have been found (Bonferroni).
std::vector<ChangePoint> change_points(std::span<const double> times, const ChangeOptions& options = {});

}  // namespace deltagauge::reports::compare
