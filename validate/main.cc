// deltagauge: parses the command line, runs the subcommand and turns what is thrown into a message and exit status 2.
#include <CLI/CLI.hpp>
#include <iostream>
#include <new>
#include <string_view>

#include "core/error.h"
#include "reports/printable.h"
#include "validate/cli_flags.h"

namespace {

namespace cli = deltagauge::validate::cli;

// An empty value, as an unset shell variable gives, would read as a flag that is not there.
void require_values(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const bool flag = word.starts_with("--") && word.find('=') + 1 == word.size();  // --shard=
    if (word.empty() || flag) deltagauge::fail(i > 1 && !flag ? argv[i - 1] : argv[i], ": expected a value, got none");
  }
}

int run(int argc, char** argv) {
  int status = 2;
  CLI::App app;
  cli::Flags flags;
  flags.validate.argv.assign(argv, argv + argc);
  flags.bench.argv = flags.range.argv = flags.cp.argv = flags.replay.argv = flags.validate.argv;
  cli::add_command_line(app, flags, status);
  require_values(argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e);  // help and version
    std::cerr << "deltagauge: " << deltagauge::reports::printable(e.what()) << "\nRun with --help for the flags.\n";
    return 2;
  }
  if (app.get_subcommands().empty()) deltagauge::fail("expected a subcommand; run with --help for the list");
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  int status = 2;
  try {
    status = run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "deltagauge: out of memory\n";
  } catch (const std::exception& e) {
    std::cerr << "deltagauge: " << deltagauge::reports::printable(e.what()) << "\n";
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "deltagauge: cannot write to stdout\n";
    return 2;
  }
  return status;
}
