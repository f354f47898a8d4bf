// The command line as a tree of subcommands, flags and examples. Parsing, --help, the man page and the completions all
// read this one tree.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include "validate/cli.h"
#include "validate/cli_cp.h"
#include "validate/cli_range.h"
#include "validate/cli_replay.h"

namespace CLI {
class App;
}

namespace deltagauge::validate::cli {

// Where the values of the flags go.
struct Flags {
  ValidateArgs validate;
  BenchArgs bench;
  RangeArgs range;
  CpArgs cp;
  ReplayArgs replay;
  ReportArgs report;
  ShrinkArgs shrink;
  std::string what, filter = "*", id, out, backend;  // list, selftest, case
  bool json = false;
};

// Gives app the subcommands and flags; parsing then runs a subcommand and puts its exit status into status. flags and status
// outlive app. A type name (FILE, BACKENDS, {f64,dd}) says what completes a value, see cli_complete.cc; the footer of a
// subcommand holds its examples, one a line.
void add_command_line(CLI::App& app, Flags& flags, int& status);

// Exit statuses and environment variables, for --help and the man page.
struct Meaning {
  std::string_view name, text;
};
std::span<const Meaning> exit_statuses();
std::span<const Meaning> environment();

}  // namespace deltagauge::validate::cli
