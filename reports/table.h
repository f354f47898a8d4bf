// The verdicts as text for people: one line per (case, backend, check), grouped by case; failures in words; a summary.
#pragma once
#include <string>

#include "reports/report.h"

namespace deltagauge::reports {

enum class Rows { all, failures };  // failures: no table, only what failed or broke, and the summary

struct TableStyle {
  int width = 0;        // columns of the terminal; 0: no limit. Case ids and failures are never cut: they are for pasting
  bool colour = false;  // ANSI colours on outcomes
  Rows rows = Rows::all;
};

std::string table(const Report& report, const TableStyle& style);

}  // namespace deltagauge::reports
