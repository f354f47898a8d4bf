// A report whose every text is hostile to some format, and whose numbers are not finite, for the tests of the writers; and
// what these tests share.
#pragma once
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <string>

#include "reports/file.h"
#include "reports/sample_report.h"

namespace deltagauge::reports {

inline std::string hostile(const std::string& start) {
  const std::string controls("\0\x01\x08\x1b\x1f\x7f", 6);
  return start + "\"'<&>]]>--> \t\r\n::error::x\n" + controls + "\xff\xfe\xc0\x80\xed\xa0\x80\xef\xbf\xbe\xf0\x9f\x98\x80" +
         "|\\|%0A%,;:`*_~[x](y)#!$ {\"a\"} @" + std::string(3000, 'n');
}

inline Report hostile_report() {
  Report report = sample_report();
  Timing timing = sample_timing();
  timing.min = timing.median = timing.mean = timing.p95 = std::numeric_limits<double>::quiet_NaN();
  timing.samples = {0, -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  timing.bytes = timing.flops = timing.floor = std::numeric_limits<double>::infinity();
  report.results[0].timing = timing;
  report.results[1].timing = sample_timing();
  for (Result& r : report.results) {
    for (std::string* text : {&r.test, &r.name, &r.op, &r.direction, &r.backend, &r.check, &r.reason, &r.repro})
      *text = hostile("=" + *text);
    r.seconds = std::numeric_limits<double>::quiet_NaN();
    if (auto node = r.tensors.extract("o")) node.key() = hostile("o"), r.tensors.insert(std::move(node));
  }
  for (std::string* text : {&report.tool.version, &report.tool.git_sha, &report.host.cpu, &report.device->name,
                            &report.configs[0].path, &report.argv[0], &report.argv[2]})
    *text = hostile(*text);
  return report;
}

inline bool have(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

// What a program prints on both streams when it reads text, followed by its exit status.
inline std::string answer_to(const std::string& text, const std::string& command) {
  const std::string path = (std::filesystem::temp_directory_path() / ("formats_" + std::to_string(::getpid()))).string();
  write_file(path, text);
  const int status = std::system((command + " <" + path + " >" + path + ".out 2>&1").c_str());
  const std::string answer = read_file(path + ".out") + "exit " + std::to_string(WEXITSTATUS(status));
  std::filesystem::remove(path);
  std::filesystem::remove(path + ".out");
  return answer;
}

}  // namespace deltagauge::reports
