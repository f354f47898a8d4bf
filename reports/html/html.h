// The HTML form of a Report: one self-contained page that loads nothing. Tables and static SVG plots stand in the markup and
// need no JavaScript; page.js adds filtering, sorting and, where uPlot was built in, plots that answer to the pointer.
#pragma once
#include <span>
#include <string>

#include "reports/report.h"

namespace deltagauge::reports::html {

// The time of one benchmark row at one commit.
struct HistoryPoint {
  std::string commit, date;
  std::string series;  // case/backend/check
  double median = 0;   // seconds
  bool change_point = false;
};

// row_limit: the row ratio above which a verdict fails; plots mark it. history: oldest commit first, may be empty.
std::string to_html(const Report& report, double row_limit, std::span<const HistoryPoint> history = {});

// Whether this build's pages carry uPlot.
bool has_interactive_plots();

}  // namespace deltagauge::reports::html
