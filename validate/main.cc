// deltagauge: flags to subcommands. The only file that sees CLI11.
#include <CLI/CLI.hpp>
#include <iostream>
#include <new>

#include "core/error.h"
#include "reports/build_info.h"
#include "validate/cli.h"

namespace {

namespace cli = deltagauge::validate::cli;

std::string version_text() {
  const auto tool = deltagauge::reports::this_tool();
  std::string text =
      "deltagauge " + tool.version + " (" + tool.git_sha + (tool.dirty ? ", modified" : "") + ", " + tool.compiler;
  for (const std::string& arch : tool.cuda_archs) text += ", sm_" + arch;
  return text + ")";
}

// A repeated flag, one value each time.
void repeated(CLI::App& app, const char* flag, std::vector<std::string>& into, const char* help) {
  app.add_option(flag, into, help)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void add_validate(CLI::App& top, cli::ValidateArgs& a, int& status) {
  CLI::App& app = *top.add_subcommand("validate", "run backends on cases, compare with the oracle, judge");
  app.add_option("CONFIG", a.configs, "sweeps (JSON)");
  repeated(app, "--case", a.cases, "a case by its id; may be repeated");
  app.add_option("--tensors", a.tensors, "inputs, and outputs to judge, from a safetensors file");
  app.add_option("--op", a.op, "the operation that --tensors are of");
  app.add_option("--staging", a.staging, "where the outputs in --tensors were rounded, see list stagings");
  app.add_option("--backend", a.backend, "globs, comma separated: cuda.gdn.*,reference.recurrent");
  app.add_option("--oracle", a.oracle, "auto, f64, dd, quad or oct");
  repeated(app, "--check", a.checks, "in place of the checks the config asks for; may be repeated");
  app.add_option("--filter", a.filter, "cases whose id or name matches this glob");
  repeated(app, "--set", a.settings, "AXIS=VALUE on every case; may be repeated");
  app.add_option("--seed", a.seed, "seed of the inputs of every case");
  app.add_option("--shard", a.shard, "I/N: every Nth case, from the Ith");
  app.add_option("--report", a.report_folder, "write report.json and table.txt into this folder");
  app.add_option("--json", a.json, "write the JSON report to this file; - is stdout, with nothing else there");
  app.add_flag("--require-gpu", a.require_gpu, "a skip for want of a GPU is a failure");
  app.add_flag("--list", a.list, "say what would run, one \"case backend check\" a line, and run nothing");
  app.add_flag("--quiet", a.quiet, "no progress and no table: failures and the summary only");
  app.callback([&] { status = cli::validate(a); });
}

struct Flags {
  cli::ValidateArgs validate;
  cli::ReportArgs report;
  std::string what, filter = "*", id, out, backend;
  bool json = false;
};

void add_rest(CLI::App& top, Flags& f, int& status) {
  CLI::App& selftest =
      *top.add_subcommand("selftest", "the judge judged: planted faults and correct variants through the checks");
  selftest.add_option("--filter", f.filter, "faults and variants whose name matches this glob");
  selftest.add_flag("--json", f.json, "as JSON");
  selftest.callback([&] { status = cli::selftest(f.filter, f.json); });

  CLI::App& report = *top.add_subcommand("report", "read reports")->require_subcommand(1);
  CLI::App& show = *report.add_subcommand("show", "as the table that validate prints; the exit status is the report's");
  show.add_option("FILE", f.report.files, "JSON reports")->required();
  show.add_flag("--accuracy", f.report.accuracy, "the accuracy table of docs/numerics.md instead, over all files");
  show.callback([&] { status = cli::report_show(f.report); });

  std::string known;
  for (const std::string& what : cli::listable()) known += (known.empty() ? "" : ", ") + what;
  CLI::App& list = *top.add_subcommand("list", "what is there: " + known);
  list.add_option("WHAT", f.what, known)->required();
  list.add_flag("--json", f.json, "as a JSON array of objects");
  list.callback([&] { status = cli::list(f.what, f.json); });

  CLI::App& cases = *top.add_subcommand("case", "look at one case")->require_subcommand(1);
  CLI::App& in_words = *cases.add_subcommand("show", "every axis, tensor and cost of a case in words");
  in_words.add_option("ID", f.id, "case id")->required();
  in_words.callback([&] { status = cli::case_show(f.id); });
  CLI::App& dump = *cases.add_subcommand("dump", "a case's inputs, and a backend's outputs, as safetensors");
  dump.add_option("ID", f.id, "case id")->required();
  dump.add_option("--out", f.out, "the file to write")->required();
  dump.add_option("--backend", f.backend, "also run this backend and add its outputs");
  dump.callback([&] { status = cli::case_dump(f.id, f.out, f.backend); });
}

}  // namespace

int main(int argc, char** argv) {
  int status = 2;
  try {
    CLI::App app{"Delta-rule linear attention kernels and the instruments that judge them", "deltagauge"};
    app.require_subcommand(0, 1);  // 0: so that a misspelt one is named rather than called missing
    app.set_version_flag("--version", version_text());
    Flags flags;
    flags.validate.argv.assign(argv, argv + argc);
    add_validate(app, flags.validate, status);
    add_rest(app, flags, status);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
      if (e.get_exit_code() == 0) return app.exit(e);  // help and version
      std::cerr << "deltagauge: " << e.what() << "\nRun with --help for the flags.\n";
      return 2;
    }
    if (app.get_subcommands().empty()) deltagauge::fail("expected a subcommand; run with --help for the list");
  } catch (const std::bad_alloc&) {
    std::cerr << "deltagauge: out of memory\n";
    return 2;
  } catch (const std::exception& e) {
    std::cerr << "deltagauge: " << e.what() << "\n";
    return 2;
  }
  std::cout.flush();
  if (!std::cout) {
    std::cerr << "deltagauge: cannot write to stdout\n";
    return 2;
  }
  return status;
}
