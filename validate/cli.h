// The subcommands of the deltagauge binary, behind the flags: main.cc parses, these run. Each returns the exit status
// (0 judged and passed, 1 a verdict failed, 2 wrong usage or input, 3 nothing judged) and throws Error for 2.
#pragma once
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "reports/report.h"

namespace deltagauge::validate::cli {

// Where a report goes besides stdout; "" when not asked for.
struct Outputs {
  std::string folder;  // --report DIR: every form below by its usual name
  std::string json;    // FILE or -
  std::string junit, html, trace, sarif, openmetrics, csv, markdown, gbench, bencher;
  bool github = false;  // annotations on stdout, the step summary where GITHUB_STEP_SUMMARY says
};

// What every subcommand that runs sweeps takes.
struct RunArgs {
  std::vector<std::string> configs, cases;  // paths of sweeps; case ids
  std::string backend = "*", oracle = "auto", filter = "*";
  std::vector<std::string> settings;  // AXIS=VALUE
  std::string seed, shard;            // "" when not given; shard: I/N
  Outputs outputs;
  bool require_gpu = false, list = false, quiet = false;
  std::string resume;  // a report whose rows are taken over
  double timeout = 0;  // seconds a job; 0: none
  bool isolate = false;
  std::string worker;             // a task: this process is a worker (isolate.h)
  std::vector<std::string> argv;  // for the report
};

struct ValidateArgs : RunArgs {
  std::string tensors, op, staging;  // --tensors FILE --op OP [--staging NAME]
  std::vector<std::string> checks;
  std::string host;                   // how host.* run; "": without them
  bool maps = false, shrink = false;  // maps: error maps of every row
};
int validate(const ValidateArgs& args);

struct BenchArgs : RunArgs {
  std::vector<std::string> timers;                        // empty: all
  double min_time = 0.5, max_time = 15, max_noise = 0.5;  // seconds, seconds, percent
  std::vector<std::string> baselines;                     // reports to compare with
  std::string against;                                    // another binary to run in turn with this one
  int blocks = 8;                                         // of other, this, this, other
  bool across_devices = false, bits = false, both_math = false;
};
int bench(const BenchArgs& args);

struct ReportArgs {
  std::vector<std::string> files;
  Outputs outputs;
  bool accuracy = false, across_devices = false, bits = false, allow_missing = false;
  std::vector<std::string> more_base, more_fresh;  // further sessions of each side
  std::string history;                             // a file of JSON lines
};
int report_show(const ReportArgs& args);
int report_convert(const ReportArgs& args);
int report_diff(const ReportArgs& args);
int report_merge(const ReportArgs& args);
int report_html(const ReportArgs& args);
int report_trace(const ReportArgs& args);
int report_history(const ReportArgs& args);

int list(const std::string& what, bool json);
std::vector<std::string> listable();  // what list takes

int selftest(const std::string& filter, bool json);

int case_show(const std::string& id);
int case_dump(const std::string& id, const std::string& out, const std::string& backend, const std::string& host = "");

struct ShrinkArgs {
  std::string id, backend = "*", check, oracle = "auto", out;  // check: "" all; out: "" none
  double timeout = 0;
  bool isolate = false;
};
int case_shrink(const ShrinkArgs& args);

// Shared by the subcommands.
// reference.peer.* too where one of the globs matches nothing else, host.* where it says how they run.
Registry all_backends(std::string_view globs = {}, const std::string& host = "");
std::optional<reports::Device> current_device();
// Throws Error, naming the known backends, when a part of a comma separated glob matches none of them.
void require_known_backends(const std::vector<std::string_view>& known, const std::string& globs);
void require_known_backends(const std::vector<const Backend*>& known, const std::string& globs);

// Rows of text as columns padded to their widest, two spaces apart, or as a JSON array of objects.
struct Listing {
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;
};
std::string as_text(const Listing& listing);
std::string as_json(const Listing& listing);

}  // namespace deltagauge::validate::cli
