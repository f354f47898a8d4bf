#include "validate/cli_flags.h"

#include <CLI/CLI.hpp>
#include <limits>

#include "bench/timer.h"
#include "oracle/oracle.h"
#include "reports/build_info.h"
#include "validate/cli_manual.h"
#include "validate/cli_number.h"

namespace deltagauge::validate::cli {
namespace {

// Headings of --help, in this order.
constexpr const char *kRun = "What to run", *kRead = "What to read", *kJudge = "What to judge", *kMeasure = "How to measure",
                     *kCompare = "What to compare with", *kOutputs = "Outputs";

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max(), kMostRanks = 1024;

std::string version_text() {
  const auto tool = reports::this_tool();
  std::string text =
      "deltagauge " + tool.version + " (" + tool.git_sha + (tool.dirty ? ", modified" : "") + ", " + tool.compiler;
  for (const std::string& arch : tool.cuda_archs) text += ", sm_" + arch;
  return text + ")";
}

// {a,b,c}: one of these.
template <class Names>
std::string one_of(const Names& names) {
  std::string text;
  for (const auto& name : names) text += (text.empty() ? "{" : ",") + std::string(name);
  return text + "}";
}

std::string precisions() {
  using oracle::Precision;
  std::vector<std::string_view> names;
  for (const Precision p : {Precision::automatic, Precision::f64, Precision::dd, Precision::quad, Precision::oct})
    names.push_back(oracle::name(p));
  return one_of(names);
}

// Options and flags of one subcommand, under the heading last named.
struct Adder {
  CLI::App& app;
  std::string heading;

  template <class T>
  CLI::Option& value(const char* name, T& into, const std::string& type, const std::string& help) const {
    return *app.add_option(name, into, help)->type_name(type)->group(heading);
  }
  void positive(const char* name, double& into, const std::string& type, const std::string& help) const {
    value(name, into, type, help).check(not_positive);
  }
  template <class T>  // an integer, or several
  CLI::Option& integer(const char* name, T& into, std::int64_t least, std::int64_t most, const std::string& help) const {
    return *value(name, into, "N", help).check([=](const std::string& text) { return not_within(least, most, text); });
  }
  // A flag that may be repeated, one value each time.
  void repeated(const char* name, std::vector<std::string>& into, const std::string& type, const std::string& help) const {
    value(name, into, type, help + "; may be repeated")
        .allow_extra_args(false)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
  void flag(const char* name, bool& into, const std::string& help) const { app.add_flag(name, into, help)->group(heading); }
};

// Files of a report, for every subcommand that makes or converts one.
void add_outputs(CLI::App& app, Outputs& to) {
  const Adder add{app, kOutputs};
  add.value("--report", to.folder, "DIR", "a folder for the usual of these, by their usual names");
  add.value("--json", to.json, "FILE", "the JSON report; - is stdout, with nothing else there");
  add.value("--html", to.html, "FILE", "one page that loads nothing");
  add.value("--trace", to.trace, "FILE", "a timeline: F.pftrace for Perfetto, F.json for Chrome's format");
  add.value("--junit", to.junit, "FILE", "JUnit XML");
  add.value("--sarif", to.sarif, "FILE", "SARIF 2.1.0");
  add.value("--openmetrics", to.openmetrics, "FILE", "OpenMetrics text");
  add.value("--csv", to.csv, "FILE", "a row a result and tensor");
  add.value("--markdown", to.markdown, "FILE", "tables");
  add.value("--gbench", to.gbench, "FILE", "timings as Google Benchmark's JSON");
  add.value("--bencher", to.bencher, "FILE", "timings in Bencher's metric format");
  add.flag("--github", to.github, "annotations on stdout and a summary for the step, in a GitHub workflow");
}

void add_run(CLI::App& app, RunArgs& a) {
  const Adder run{app, kRun}, judge{app, kJudge}, outputs{app, kOutputs};
  run.value("CONFIG", a.configs, "CONFIG", "sweeps (JSON)");
  run.repeated("--case", a.cases, "ID", "a case by its id");
  run.value("--backend", a.backend, "BACKENDS", "globs, comma separated: cuda.gdn.*,reference.recurrent");
  run.value("--filter", a.filter, "GLOB", "cases whose id or name matches");
  run.repeated("--set", a.settings, "AXIS=VALUE", "sets an axis of every case");
  run.integer("--seed", a.seed, 0, kMost, "seed of the inputs of every case");
  run.value("--shard", a.shard, "I/N", "every Nth case, from the Ith");
  run.value("--resume", a.resume, "FILE", "take over the rows of an earlier report and run the rest");
  run.flag("--list", a.list, "say what would run, a line each, and run nothing");
  judge.value("--oracle", a.oracle, precisions(), "precision of the right answer");
  judge.flag("--require-gpu", a.require_gpu, "a skip for want of a GPU is a failure");
  judge.positive("--timeout", a.timeout, "SECONDS", "after which a job, in a process of its own, is an error row");
  judge.flag("--isolate", a.isolate, "each case in a process of its own: a crash is an error row");
  Adder{app, ""}.value("--worker", a.worker, "TASK", "for --isolate and --timeout: this process is a worker");
  add_outputs(app, a.outputs);
  outputs.flag("--quiet", a.quiet, "no progress and no table: failures and the summary only");
}

void add_validate(CLI::App& top, ValidateArgs& a, int& status) {
  CLI::App& app = *top.add_subcommand("validate", "run backends on cases, compare with the oracle, judge");
  add_run(app, a);
  const Adder run{app, kRun}, judge{app, kJudge};
  run.value("--tensors", a.tensors, "FILE", "inputs, and outputs to judge, from a safetensors file");
  run.value("--op", a.op, "OP", "the operation that --tensors are of");
  run.value("--host", a.host, "HOW", "also the CUDA kernels on this CPU, host.*: mode=turns|late|early|shuffled,sms=N,...");
  judge.value("--staging", a.staging, "STAGING", "where the outputs in --tensors were rounded, see list stagings");
  judge.repeated("--check", a.checks, "CHECK", "in place of the checks the config asks for");
  judge.flag("--map", a.maps, "keep where the error lies, by head and tokens, of passed rows too");
  judge.flag("--shrink", a.shrink, "look for a smaller case of each kind of failure, and leave its tensors by the report");
  app.callback([&] { status = validate(a); });
  app.footer(
      "deltagauge validate configs/gdn/smoke.json --report report\n"
      "deltagauge validate configs/cases/*.json --backend 'reference.as_kernel.*' --check accuracy --quiet\n"
      "deltagauge validate --case gdn/fwd/len=65,HK=1,HV=1,K=64,V=64/bf16/gate=mild/keys=iid/precise/seed=3");
}

void add_bench(CLI::App& top, BenchArgs& a, int& status) {
  CLI::App& app = *top.add_subcommand("bench", "time backends on cases; no time is given for a wrong answer");
  add_run(app, a);
  const Adder run{app, kRun}, measure{app, kMeasure}, against{app, kCompare};
  measure.repeated("--timer", a.timers, one_of(deltagauge::bench::timers()),
                   "how calls are timed; all that suit by default");
  run.flag("--both-math", a.both_math, "every case in math=precise and in math=fast, and a row that holds the two");
  measure.positive("--min-time", a.min_time, "SECONDS", "least seconds of samples a row");
  measure.positive("--max-time", a.max_time, "SECONDS", "after which a noisy row is ended");
  measure.positive("--noise", a.max_noise, "PERCENT", "relative deviation that ends a row");
  against.repeated("--baseline", a.baselines, "FILE", "a report; exit 1 on a regression. More are further sessions");
  against.value("--against", a.against, "FILE", "another deltagauge binary, run in turn with this one");
  against.integer("--blocks", a.blocks, 1, 1000,
                  "turns of --against: other, this, this, other; 8 find one changed row, 16 one of 200");
  against.flag("--across-devices", a.across_devices, "compare even with a baseline of another device");
  against.flag("--bits", a.bits, "changed output bits are a regression too");
  app.callback([&] { status = bench(a); });
  app.footer(
      "deltagauge bench configs/gdn/perf.json --json now.json\n"
      "deltagauge bench configs/gdn/perf.json --backend 'cuda.gdn.*' --timer graph-cold --baseline base.json\n"
      "deltagauge bench --case gdn/fwd/len=256,HK=2,HV=2/bf16/seed=1 --backend reference.chunk64 --timer cpu");
}

void add_range(CLI::App& top, RangeArgs& a, int& status) {
  CLI::App& app = *top.add_subcommand("range", "where each stage overflows or flushes, and how far the inputs may go");
  add_run(app, a);
  const Adder run{app, kRun}, judge{app, kJudge};
  judge.repeated("--quantity", a.quantities, one_of(range_quantities()), "bisect this one in place of all");
  judge.flag("--no-frontiers", a.no_frontiers, "ranges of the stages only, no bisection");
  run.flag("--both-math", a.both_math, "every case in math=precise and in math=fast");
  app.callback([&] { status = range(a); });
  app.footer(
      "deltagauge range configs/gdn/frontier.json --backend 'cuda.gdn.*' --json ranges.json\n"
      "deltagauge range --case gdn/fwd/len=64,HK=1,HV=1,K=16,V=16/bf16/seed=1 "
      "--backend reference.peer.split16.first.f32 --quantity g");
}

void add_cp(CLI::App& top, CpArgs& a, int& status) {
  CLI::App& app = *top.add_subcommand("cp", "whether ranks change bits, or more than the budget allows");
  add_run(app, a);
  const Adder run{app, kRun};
  run.integer("--degree", a.degrees, 1, kMostRanks, "ranks, in place of 1, 2, 3, 4 and 8; may be repeated")
      .allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  std::string kinds;
  for (const std::string& kind : cp_tables()) kinds += (kinds.empty() ? "" : ", ") + kind;
  run.repeated("--table", a.tables, "TABLE", "this kind of fragment table in place of all: " + kinds);
  run.integer("--segment", a.segment, 1, kMost, "tokens of a canonical segment, a multiple of 64");
  app.callback([&] { status = cp(a); });
  app.footer(
      "deltagauge cp configs/gdn/cp.json --json cp.json\n"
      "deltagauge cp --case gdn/fwd/len=37+51+40,HK=1,HV=1,K=16,V=16/bf16/seed=1 --degree 2 --table contiguous");
}

void add_replay(CLI::App& top, ReplayArgs& a, int& status) {
  CLI::App& app = *top.add_subcommand("replay", "capture a call once, replay it on other layouts, compare the bits");
  add_run(app, a);
  const Adder run{app, kRun}, measure{app, kMeasure};
  run.integer("--walk", a.walk, 0, kMost, "seed of the walk over layouts");
  run.integer("--step", a.step, 0, kMost, "only this replay of the walk and the one before it");
  measure.flag("--no-times", a.no_times, "no times of a replay by the active part of the capacity");
  app.callback([&] { status = replay(a); });
  app.footer(
      "deltagauge replay configs/gdn/replay.json --backend 'cuda.gdn.*' --report report\n"
      "deltagauge replay --case gdn/fwd/len=96x4/bf16/h0=normal=1/slots=9/seed=1 --backend reference.recurrent --step 17");
}

void add_report(CLI::App& top, ReportArgs& a, int& status) {
  CLI::App& report = *top.add_subcommand("report", "read, compare, join and convert reports")->require_subcommand(1);
  report.footer(
      "deltagauge report show report/report.json\n"
      "deltagauge report diff base.json now.json");
  const auto command = [&](const char* name, const char* help, int (*run)(const ReportArgs&), const char* examples) {
    CLI::App* app = report.add_subcommand(name, help);
    app->callback([&a, &status, run] { status = run(a); });
    app->footer(examples);
    return Adder{*app, kRead};
  };

  const Adder show = command("show", "the table that the run printed; the exit status is the report's", report_show,
                             "deltagauge report show report/report.json\n"
                             "deltagauge report show --accuracy report/report.json");
  show.value("FILE", a.files, "FILE", "JSON reports").required();
  show.flag("--accuracy", a.accuracy, "the accuracy table of docs/numerics.md instead, over all files");

  const Adder convert = command("convert", "into other forms", report_convert,
                                "deltagauge report convert report/report.json --junit junit.xml --csv rows.csv\n"
                                "deltagauge report convert report/report.json --report all");
  convert.value("FILE", a.files, "FILE", "a JSON report").required()->expected(1);
  add_outputs(convert.app, a.outputs);

  const Adder diff = command("diff", "time, accuracy and bits row by row; exit 1 on a regression", report_diff,
                             "deltagauge report diff base.json now.json\n"
                             "deltagauge report diff base.json now.json --bits --json diff.json");
  diff.value("FILES", a.files, "FILE", "BASE NEW").required()->expected(2);
  const Adder against{diff.app, kCompare}, written{diff.app, kOutputs};
  against.repeated("--base", a.more_base, "FILE", "one more session of BASE");
  against.repeated("--new", a.more_fresh, "FILE", "one more session of NEW");
  against.flag("--across-devices", a.across_devices, "compare reports of different devices");
  against.flag("--bits", a.bits, "changed output bits are a regression too");
  against.flag("--allow-missing", a.allow_missing, "rows that only BASE has do not fail");
  written.value("--json", a.outputs.json, "FILE", "the comparison as JSON; - is stdout");

  const Adder merge = command("merge", "join the shards of one run", report_merge,
                              "deltagauge report merge shard1.json shard2.json --json whole.json\n"
                              "deltagauge report merge shard1.json shard2.json --json -");
  merge.value("FILE", a.files, "FILE", "JSON reports of the shards").required();
  Adder{merge.app, kOutputs}.value("--json", a.outputs.json, "FILE", "the file to write; - is stdout").required();

  const Adder html = command("html", "one page that loads nothing", report_html,
                             "deltagauge report html report/report.json --out report.html\n"
                             "deltagauge report html now.json --out report.html --history history.jsonl");
  html.value("FILE", a.files, "FILE", "a JSON report").required()->expected(1);
  Adder{html.app, kOutputs}.value("--out", a.outputs.html, "FILE", "the file to write").required();
  html.value("--history", a.history, "FILE", "draw this history file too");

  const Adder trace = command("trace", "a timeline", report_trace,
                              "deltagauge report trace report/report.json --out report.pftrace\n"
                              "deltagauge report trace report/report.json --out trace.json");
  trace.value("FILE", a.files, "FILE", "a JSON report").required()->expected(1);
  Adder{trace.app, kOutputs}
      .value("--out", a.outputs.trace, "FILE", "F.pftrace for Perfetto, F.json for Chrome's format")
      .required();

  const Adder history =
      command("history", "add reports to a history of timings; show where their level changed", report_history,
              "deltagauge report history history.jsonl --add now.json\n"
              "deltagauge report history history.jsonl");
  history.value("FILE", a.history, "FILE", "the history, JSON lines; made when it is not there").required();
  history.repeated("--add", a.files, "FILE", "a JSON report to add first");
}

void add_rest(CLI::App& top, Flags& f, int& status) {
  CLI::App& self =
      *top.add_subcommand("selftest", "the judge judged: planted faults and correct variants through the checks");
  Adder{self, kRun}.value("--filter", f.filter, "GLOB", "faults and variants whose name matches");
  Adder{self, kOutputs}.flag("--json", f.json, "as JSON");
  self.callback([&] { status = selftest(f.filter, f.json); });
  self.footer("deltagauge selftest --filter 'chunk64.f32'\ndeltagauge selftest --json --filter 'chunk64.f32'");

  CLI::App& lists = *top.add_subcommand("list", "what is there");
  Adder{lists, kRead}.value("WHAT", f.what, one_of(listable()), "one of " + one_of(listable())).required();
  Adder{lists, kOutputs}.flag("--json", f.json, "as a JSON array of objects");
  lists.callback([&] { status = list(f.what, f.json); });
  lists.footer("deltagauge list backends\ndeltagauge list regimes\ndeltagauge list axes --json");

  const char* id = "gdn/fwd/len=65,HK=1,HV=1,K=64,V=64/bf16/gate=mild/keys=iid/precise/seed=3";
  CLI::App& cases = *top.add_subcommand("case", "look at one case")->require_subcommand(1);
  CLI::App& show = *cases.add_subcommand("show", "every axis, tensor and cost of a case in words");
  Adder{show, kRead}.value("ID", f.id, "ID", "case id").required();
  show.callback([&] { status = case_show(f.id); });
  show.footer("deltagauge case show " + std::string(id) + "\ndeltagauge case show gdn/fwd/len=63+65+1/f16/gate=strong");
  CLI::App& dump = *cases.add_subcommand("dump", "a case's inputs, and a backend's outputs, as safetensors");
  const Adder dumped{dump, kRead};
  dumped.value("ID", f.id, "ID", "case id").required();
  dumped.value("--backend", f.backend, "BACKEND", "also run this backend and add its outputs");
  Adder{dump, kOutputs}.value("--out", f.out, "FILE", "the file to write").required();
  dump.callback([&] { status = case_dump(f.id, f.out, f.backend); });
  dump.footer("deltagauge case dump " + std::string(id) + " --out case.safetensors\ndeltagauge case dump " + id +
              " --out call.safetensors --backend reference.as_kernel.chunk64.io");
  CLI::App& small = *cases.add_subcommand("shrink", "the smallest case on which a backend still fails a check");
  const Adder shrunk{small, kRead}, how{small, kJudge};
  shrunk.value("ID", f.shrink.id, "ID", "case id").required();
  shrunk.value("--backend", f.shrink.backend, "BACKENDS", "globs, comma separated; the first that fails is taken");
  how.value("--check", f.shrink.check, "CHECK", "the check that must fail; any by default");
  how.value("--oracle", f.shrink.oracle, precisions(), "precision of the right answer");
  how.positive("--timeout", f.shrink.timeout, "SECONDS", "after which a run counts as broken");
  how.flag("--isolate", f.shrink.isolate, "each run in a process of its own, so that a crash can be shrunk");
  Adder{small, kOutputs}.value("--out", f.shrink.out, "FILE", "the small case's tensors, as safetensors");
  small.callback([&] { status = case_shrink(f.shrink); });
  small.footer("deltagauge case shrink " + std::string(id) + "\ndeltagauge case shrink " + id +
               " --backend reference.recurrent --check accuracy");
  cases.footer("deltagauge case show " + std::string(id) + "\ndeltagauge case dump " + id + " --out case.safetensors");
}

}  // namespace

void add_command_line(CLI::App& app, Flags& flags, int& status) {
  app.name("deltagauge");
  app.description("Delta-rule linear attention kernels and the instruments that judge them");
  app.require_subcommand(0, 1);  // 0: so that a misspelt one is named rather than called missing
  app.set_version_flag("--version", version_text(), "print version, commit, compiler and GPU architectures");
  app.set_help_flag("-h,--help", "print the flags and examples, also after a subcommand");
  app.formatter(help_formatter());
  app.footer(
      "deltagauge list backends\n"
      "deltagauge validate configs/gdn/smoke.json --report report\n"
      "deltagauge report show report/report.json");
  add_validate(app, flags.validate, status);
  add_bench(app, flags.bench, status);
  add_range(app, flags.range, status);
  add_cp(app, flags.cp, status);
  add_replay(app, flags.replay, status);
  add_report(app, flags.report, status);
  add_rest(app, flags, status);
  add_manual(app, status);
}

std::span<const Meaning> exit_statuses() {
  static constexpr Meaning kStatuses[] = {
      {"0", "everything asked for was judged and passed"},
      {"1", "a verdict failed, or a comparison found a regression"},
      {"2", "usage, config or input is wrong, or the machinery failed; the message says what was expected and what was got"},
      {"3", "nothing was judged: all skipped, or nothing matched"}};
  return kStatuses;
}

std::span<const Meaning> environment() {
  static constexpr Meaning kVariables[] = {
      {"NO_COLOR", "when set and not empty, no colour on a terminal; elsewhere there is none"},
      {"GITHUB_STEP_SUMMARY", "with --github, the file that the summary is added to"}};
  return kVariables;
}

}  // namespace deltagauge::validate::cli
