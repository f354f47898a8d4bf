// The parts of a page, one function and one file each. A part that has nothing to show adds nothing.
#pragma once
#include <span>
#include <string>
#include <vector>

#include "reports/html/chart.h"
#include "reports/html/html.h"
#include "reports/report.h"

namespace deltagauge::reports::html {

struct Page {
  std::string body, links;          // links: items of the page's table of contents
  std::vector<std::string> charts;  // JSON objects

  void open(const std::string& id, const std::string& title);  // a <section> with its heading
  void close() { body += "</section>\n"; }
  void add(const Chart& chart, const std::string& extra = "");
};

// The tensor nearest to its budget, or furthest over it. Null when there is none.
const std::pair<const std::string, TensorMetrics>* tightest(const Result& result);

void add_failures(Page& page, const Report& report);
void add_results(Page& page, const Report& report);
void add_maps(Page& page, const Report& report, double row_limit);
void add_ranges(Page& page, const Report& report);
void add_timings(Page& page, const Report& report);
void add_history(Page& page, std::span<const HistoryPoint> history);

// A table's markup: the head, then rows of cells that are markup already.
std::string table_of(const std::string& caption, const std::vector<std::string>& head,
                     const std::vector<std::vector<std::string>>& rows);
std::string folded(const std::string& summary, const std::string& content);  // <details>

}  // namespace deltagauge::reports::html
