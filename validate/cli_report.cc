// deltagauge report show: reports as text.
#include <unistd.h>

#include <algorithm>
#include <iostream>

#include "reports/accuracy_table.h"
#include "reports/json.h"
#include "validate/cli.h"
#include "validate/cli_output.h"

namespace deltagauge::validate::cli {

int report_show(const ReportArgs& args) {
  std::vector<reports::Report> all;
  for (const std::string& file : args.files) all.push_back(reports::load_report(file));
  if (args.accuracy) {
    std::cout << reports::accuracy_table(all);
    return 0;
  }
  int status = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (all.size() > 1) std::cout << (i ? "\n" : "") << args.files[i] << "\n";
    std::cout << reports::table(all[i], stdout_style());
    // Of several reports the gravest counts: 1 before 2 before 3 before 0.
    if (const int one = all[i].exit_status()) status = status ? std::min(status, one) : one;
  }
  return status;
}

}  // namespace deltagauge::validate::cli
