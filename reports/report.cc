#include "reports/report.h"

#include <cmath>

namespace deltagauge::reports {

std::string_view name(Outcome outcome) {
  switch (outcome) {
    case Outcome::pass:
      return "pass";
    case Outcome::fail:
      return "fail";
    case Outcome::skip:
      return "skip";
    case Outcome::error:
      return "error";
  }
  return "error";
}

bool worse(double a, double b) { return std::isnan(a) ? !std::isnan(b) : a > b; }

std::string own_job(const Result& result) { return result.test + " " + result.backend + " " + result.check; }

std::string job_of(const Result& result) { return result.job.empty() ? own_job(result) : result.job; }

std::string to_string(const Shard& shard) { return std::to_string(shard.part) + "/" + std::to_string(shard.parts); }

Report::Summary Report::summary() const {
  Summary s;
  for (const Result& result : results) {
    switch (result.outcome) {
      case Outcome::pass:
        ++s.passed;
        break;
      case Outcome::fail:
        ++s.failed;
        break;
      case Outcome::skip:
        ++s.skipped;
        break;
      case Outcome::error:
        ++s.errors;
        break;
    }
  }
  s.judged = s.passed + s.failed;
  return s;
}

int Report::exit_status() const {
  if (jobs_left) return 2;
  const Summary s = summary();
  if (s.failed) return 1;  // before errors: a failed verdict stands, whatever broke elsewhere
  if (s.errors) return 2;
  return s.judged ? 0 : 3;
}

}  // namespace deltagauge::reports
