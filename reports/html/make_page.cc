// Test tool: writes a page to standard output. usage: deltagauge_page REPORT.json | made-up | empty
#include <iostream>
#include <string_view>

#include "core/error.h"
#include "reports/html/made_up_report.h"
#include "reports/json.h"

namespace {

constexpr double kRowLimit = 1.5;  // as validate/thresholds.h; this folder may not see it

}  // namespace

int main(int argc, char** argv) {
  using namespace deltagauge::reports;
  try {
    const std::string_view what = argc == 2 ? argv[1] : "";
    if (what.empty()) deltagauge::fail("expected one argument: REPORT.json, made-up or empty");
    if (what == "made-up")
      std::cout << html::to_html(html::made_up_report(), kRowLimit, html::made_up_history());
    else
      std::cout << html::to_html(what == "empty" ? Report{} : load_report(argv[1]), kRowLimit);
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "deltagauge_page: " << e.what() << "\n";
    return 2;
  }
}
