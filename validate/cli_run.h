// What every subcommand that runs sweeps does around its loop: configs and ids to sweeps, a new report, what --resume,
// --shard, --isolate and an interrupt ask for, and the report into every form that was asked for.
#pragma once
#include <functional>
#include <iosfwd>
#include <map>
#include <string>
#include <vector>

#include "core/sweep.h"
#include "reports/report.h"
#include "validate/cli.h"
#include "validate/run.h"

namespace deltagauge::validate::cli {

inline constexpr const char* kDefaultCheck = "accuracy";  // of cases that no config asks a check for

using Settings = std::vector<std::pair<std::string, std::string>>;  // axis, text
Settings settings_of(const RunArgs& args);                          // of --set and --seed
std::string as_given(const RunArgs& args, std::string message);     // with the names of axes that --set gave them

void require_known_checks(const std::string& where, const std::vector<std::string>& names);  // where: for the message

// The sweeps of the configs and of --case, with --set, --seed, then prepare (where there is one) and --shard applied; files
// gets what was read. What is asked for twice is there once.
std::vector<Sweep> sweeps_of(const RunArgs& args, std::vector<reports::ConfigFile>& files,
                             const std::function<void(Sweep&)>& prepare = {});

// A report with everything but rows: tool, host, device, argv, configs, the time.
reports::Report new_report(const RunArgs& args, std::vector<reports::ConfigFile> files);

// The rows of --resume FILE, by job. Throws Error when the file is of another tool, device, configs or command than the
// report (reports/compare/merge.h says what of a command counts).
class Earlier {
 public:
  Earlier(const std::string& file, reports::Report& now);                  // file "": no rows. now gets its roofline
  const std::vector<reports::Result>* find(const std::string& job) const;  // null: not judged there, so still to run

 private:
  std::map<std::string, std::vector<reports::Result>> rows_;
};

std::vector<std::string> json_files(const Outputs& outputs);  // where the JSON report goes
bool writes_trace(const Outputs& outputs);                    // rows keep their spans then

// Output paths are tried before the run, so that a long run is not lost to a wrong one, and folders made. None may be one of
// the configs or of what else is read; --resume may, as its rows are in the report that takes its place. Throws Error naming
// the flag.
void require_writable_outputs(const RunArgs& args, const std::vector<std::string>& also_read = {});
// The same for a subcommand with one output. Path "": none was asked for.
void require_writable_output(const std::string& flag, const std::string& path, const std::vector<std::string>& read = {});
// Every file asked for, then the table on stdout (or with --json - the JSON and nothing else).
void write_outputs(const RunArgs& args, const reports::Report& report);

// What is compared row by row must have all of them. Throws Error naming the file of a report that an interrupt cut short.
void require_finished(const std::vector<std::string>& files, const std::vector<reports::Report>& reports);

// The output flags that were given, for messages: "--json, --html"; "" when none was.
std::string outputs_asked(const Outputs& outputs);

// Whether each case has a process of its own.
bool apart(const RunArgs& args);

// What validate, bench, range, replay and cp differ in.
struct Driver {
  std::string name;                                            // of the subcommand
  std::function<std::vector<std::string>(const Sweep&)> list;  // what would run, a line each
  std::function<std::size_t(const Sweep&)> jobs{};             // how many jobs that are; empty: one a line
  std::function<void(const Sweep&, const Loop&, reports::Report&)> run;
  std::function<void(Sweep&)> prepare{};          // before --shard; may be empty
  std::function<void(reports::Report&)> amend{};  // before the outputs; may be empty
  // After the outputs: the exit status. out: stdout, or stderr where stdout is the report's.
  std::function<int(const reports::Report&, std::ostream& out)> finish;
  std::vector<std::string> also_read = {};  // files beside the configs
};
// Sweeps, then --list, or the rows, the outputs and the driver's end. An interrupt ends it after the current job: outputs of
// what was judged, and 2.
int drive(const RunArgs& args, const Driver& driver);
int drive(const RunArgs& args, const Driver& driver, const std::vector<Sweep>& sweeps,
          std::vector<reports::ConfigFile> files);

void write_trace_file(const reports::Report& report, const std::string& path);

}  // namespace deltagauge::validate::cli
