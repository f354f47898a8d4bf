// The deltagauge binary as its users run it: exit status, stdout, files.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "core/op.h"
#include "reference/staging.h"
#include "reports/file.h"
#include "reports/json.h"
#include "validate/run.h"
#include "validate/safetensors.h"

namespace deltagauge::validate {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kCase = "gdn/fwd/len=5+0+3,HK=1,HV=2,K=8,V=4/bf16/gate=mild/keys=iid/precise/seed=3";

struct Ran {
  int status;
  std::string out, err;
};

class Cli : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "cli_" + std::to_string(::getpid()) + "/";
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  Ran run(const std::string& args) const {
    const std::string err = folder_ + "stderr";
    FILE* pipe = ::popen((DELTAGAUGE_BINARY " " + args + " 2>'" + err + "'").c_str(), "r");
    std::string out;
    for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
    const int status = ::pclose(pipe);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out, reports::read_file(err)};
  }
  std::string file(const std::string& name) const { return folder_ + name; }
  std::string written(const std::string& name, const std::string& content) const {
    reports::write_file(file(name), content);
    return file(name);
  }
  // A sweep of two seeds over one small case.
  std::string config() const {
    return written("sweep.json", R"({"schema": "deltagauge.sweep/1", "name": "small", "checks": ["accuracy", "determinism"],
      "grid": [{"axes": {"len": "5+0+3", "HK": 1, "HV": 2, "K": 8, "V": 4, "seed": [1, 2]}}]})");
  }
  std::string dumped(const std::string& backend) const {
    EXPECT_EQ(
        run("case dump '" + std::string(kCase) + "' --out '" + file("case.safetensors") + "' --backend " + backend).status,
        0);
    return file("case.safetensors");
  }
  void expect_usage_error(const std::string& args, const std::string& message) const {
    const Ran r = run(args);
    EXPECT_EQ(r.status, 2) << args;
    EXPECT_EQ(r.out, "") << args;
    EXPECT_NE(r.err.find(message), std::string::npos) << args << "\n" << r.err;
  }

 private:
  std::string folder_;
};

std::string quoted(const std::string& text) { return " '" + text + "' "; }

TEST_F(Cli, judges_a_config_prints_the_table_and_writes_the_report) {
  const Ran r =
      run("validate" + quoted(config()) + "--backend reference.recurrent,oracle.* --report" + quoted(file("report")));
  EXPECT_EQ(r.status, 0) << r.err;
  EXPECT_NE(r.out.find("8 judged: 8 passed, 0 failed; 0 skipped, 0 errors"), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find('\x1b'), std::string::npos) << "colour off a terminal";
  EXPECT_EQ(r.err.find('\r'), std::string::npos) << "progress off a terminal";
  EXPECT_EQ(reports::read_file(file("report/table.txt")), r.out);
  const reports::Report report = reports::load_report(file("report/report.json"));
  EXPECT_EQ(report.results.size(), 8u);
  ASSERT_EQ(report.configs.size(), 1u);
  EXPECT_EQ(report.argv[1], "validate");
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(file("report"))) names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  EXPECT_EQ(names, (std::vector<std::string>{"junit.xml", "metrics.txt", "report.html", "report.json", "report.sarif",
                                             "table.txt", "trace.pftrace"}))
      << "the seven of docs/cli.md";

  const Ran shown = run("report show" + quoted(file("report/report.json")));
  EXPECT_EQ(shown.status, 0);
  EXPECT_EQ(shown.out, r.out);
  const Ran accuracy = run("report show --accuracy" + quoted(file("report/report.json")));
  EXPECT_EQ(accuracy.status, 0);
  EXPECT_NE(accuracy.out.find("| reference.recurrent | bf16 | o | 2 |"), std::string::npos) << accuracy.out;
}

TEST_F(Cli, writes_a_report_that_its_schema_accepts) {
  const std::string python = DELTAGAUGE_PYTHON, folder = std::string(DELTAGAUGE_SOURCE_DIR) + "/reports/schema/";
  if (!python.starts_with('/') || std::system((python + " -c 'import jsonschema' 2>/dev/null").c_str()) != 0)
    GTEST_SKIP() << "needs python3-jsonschema for /usr/bin/python3";
  run("validate" + quoted(config()) + "--backend '*' --json" + quoted(file("r.json")));
  EXPECT_EQ(std::system(
                (python + quoted(folder + "check.py") + quoted(folder + "report-1.json") + quoted(file("r.json"))).c_str()),
            0);
}

TEST_F(Cli, json_dash_is_all_of_stdout) {
  const Ran r = run("validate --case" + quoted(kCase) + "--backend reference.recurrent --json -");
  EXPECT_EQ(r.status, 0);
  const reports::Report report = reports::parse_report(r.out, "stdout");
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_EQ(report.results[0].test, kCase);
  EXPECT_EQ(report.results[0].check, "accuracy");
}

TEST_F(Cli, lists_what_would_run_and_splits_it_into_shards) {
  const std::string all = run("validate" + quoted(config()) + "--backend reference.recurrent --list").out;
  EXPECT_EQ(std::count(all.begin(), all.end(), '\n'), 4);
  std::string shards;
  for (const char* shard : {"1/2", "2/2"})
    shards += run("validate" + quoted(config()) + "--backend reference.recurrent --list --shard " + shard).out;
  EXPECT_EQ(shards, all);
  const Ran one =
      run("validate" + quoted(config()) + "--backend reference.recurrent --list --check accuracy --set K=16 --seed 9");
  EXPECT_EQ(one.out,
            "gdn/fwd/len=5+0+3,HK=1,HV=2,K=16,V=4/bf16/gate=mild/keys=iid/precise/seed=9 reference.recurrent accuracy\n");
}

TEST_F(Cli, exits_1_on_a_failed_verdict_with_a_line_that_shows_it_again) {
  const std::string path = dumped("reference.recurrent");
  Safetensors content = read_safetensors(path);
  Tensor& o = content.tensors["o"];
  o.set({6, 1, 2}, o.at({6, 1, 2}) + 1);
  reports::write_file(path, to_safetensors(content));
  const Ran r = run("validate --tensors" + quoted(path) + "--op gdn --backend file");
  EXPECT_EQ(r.status, 1) << r.err;
  EXPECT_NE(r.out.find("at [6, 1, 2]: sequence 2, token 1 (chunk 0, position 1 of 64), head 1, value column 2"),
            std::string::npos)
      << r.out;
  const auto again = r.out.find("again: deltagauge ");
  ASSERT_NE(again, std::string::npos);
  const std::string repro = r.out.substr(again + 18, r.out.find('\n', again) - again - 18);
  EXPECT_EQ(run(repro).status, 1) << repro;
  EXPECT_EQ(run("validate --tensors" + quoted(path) + "--op gdn --backend file --json" + quoted(file("r.json"))).status, 1);
  EXPECT_EQ(run("report show" + quoted(file("r.json"))).status, 1) << "show gives the status of the report";
}

TEST_F(Cli, fails_an_infinity_of_the_wrong_sign) {
  const std::string path = quoted(file("inf.safetensors")), judge = "validate --op gdn --backend file --tensors" + path;
  ASSERT_EQ(run("case dump gdn/fwd/len=1,HK=1,HV=1,K=4,V=4/f16/gate=none/beta=const=0/h0=zero/scale=1/q[*,*,*]=0/q[*,*,0]=1/"
                "initial_state[0,0,0,0]=1e6/initial_state[0,0,1,0]=-1e6/seed=1 --backend reference.recurrent --out" +
                path)
                .status,
            0);
  EXPECT_EQ(run(judge).status, 0);
  Safetensors content = read_safetensors(file("inf.safetensors"));
  Tensor& o = content.tensors["o"];
  EXPECT_EQ(o.at({0, 0, 1}), -o.at({0, 0, 0}));
  o.set({0, 0, 1}, o.at({0, 0, 0}));
  reports::write_file(file("inf.safetensors"), to_safetensors(content));
  const Ran r = run(judge);
  EXPECT_EQ(r.status, 1);
  EXPECT_NE(r.out.find("NaN or infinite"), std::string::npos) << r.out;
}

TEST_F(Cli, judges_the_outputs_in_a_file_and_backends_on_its_inputs) {
  const std::string path = dumped("reference.as_kernel.chunk64.io");
  const Safetensors content = read_safetensors(path);
  EXPECT_EQ(content.metadata.at("deltagauge.case"), kCase);
  EXPECT_EQ(content.metadata.at("deltagauge.backend"), "reference.as_kernel.chunk64.io");
  const Ran r = run("validate --tensors" + quoted(path) + "--op gdn --backend file,reference.recurrent --json -");
  EXPECT_EQ(r.status, 0) << r.err;
  const reports::Report report = reports::parse_report(r.out, "stdout");
  ASSERT_EQ(report.results.size(), 2u);
  EXPECT_EQ(report.results[0].backend, "reference.recurrent");
  EXPECT_EQ(report.results[1].backend, "file");
  EXPECT_EQ(report.results[1].tensors.size(), 2u);
  EXPECT_EQ(report.results[1].name, "case.safetensors");
  EXPECT_NE(report.results[1].test.find("data=file"), std::string::npos);
  expect_usage_error("validate --tensors" + quoted(path) + "--op gdn --staging chunk", "staging");
  expect_usage_error("validate --tensors" + quoted(path), "--op");
  expect_usage_error("validate --tensors" + quoted(path) + "--op l2norm", "expected gdn with --tensors, got 'l2norm'");
  expect_usage_error("validate --op gdn --case" + quoted(kCase), "--tensors");
}

TEST_F(Cli, refuses_bad_tensor_files) {
  Safetensors content = read_safetensors(dumped("reference.recurrent"));
  const auto judge = [&](const std::string& bytes) { return "validate --op gdn --tensors" + quoted(written("bad", bytes)); };
  const std::string good = to_safetensors(content);
  expect_usage_error(judge(good.substr(0, good.size() - 1)), "leave the");
  expect_usage_error(judge(""), "got 0 bytes");
  expect_usage_error("validate --op gdn --tensors" + quoted(file("none")), "cannot read");
  content.tensors.erase("v");
  expect_usage_error(judge(to_safetensors(content)), "missing from the file: v");
}

TEST_F(Cli, exits_2_on_wrong_usage_and_says_what_was_expected) {
  const std::string one = "--case" + quoted(kCase);
  expect_usage_error("", "subcommand");
  expect_usage_error("judge", "judge");
  expect_usage_error("validate", "expected CONFIG..., --case ID or --tensors FILE");
  expect_usage_error("validate --no-such-flag", "no-such-flag");
  expect_usage_error("validate" + quoted(file("none.json")), "none.json");
  expect_usage_error("validate" + quoted(written("bad.json", "{\"schema\": 1}")), "bad.json");
  expect_usage_error("validate --case gdn/fwd/len=5,Q=3", "Q");
  expect_usage_error("validate " + one + "--backend 'cuda.gdn.*,nothing.*'", "'nothing.*' matches none of oracle.f64");
  expect_usage_error("validate " + one + "--check speed", "--check: expected one of accuracy");
  expect_usage_error("validate " + one + "--oracle float", "float");
  expect_usage_error("validate " + one + "--set heads=3", "heads");
  expect_usage_error("validate " + one + "--set HV", "--set: expected AXIS=VALUE, got 'HV'");
  expect_usage_error("validate " + one + "--seed x", "seed");
  for (const char* shard : {"0/2", "3/2", "1", "1/", "/2", "1/2x", "-1/2"})
    expect_usage_error("validate " + one + "--shard=" + shard, "--shard: expected I/N");
  expect_usage_error("list colours", "list: expected one of ops");
  expect_usage_error("report show" + quoted(file("none.json")), "none.json");
  expect_usage_error("report show" + quoted(written("bad.json", "{}")), "bad.json");
  expect_usage_error("case show gdn/fwd/len=", "len");
  expect_usage_error("case dump " + quoted(kCase) + "--out" + quoted(file("x")) + "--backend none", "none");
}

TEST_F(Cli, refuses_numbers_that_are_none_or_out_of_range) {
  const std::string id = quoted("gdn/fwd/len=5,HK=1,HV=1,K=8,V=4"), one = " --case" + id, digits(310, '9');
  struct Flag {
    std::string command, name;
    bool integer;
  };
  for (const Flag& flag :
       {Flag{"validate" + one, "--timeout", false}, Flag{"case shrink" + id, "--timeout", false},
        Flag{"bench" + one, "--min-time", false}, Flag{"bench" + one, "--max-time", false},
        Flag{"bench" + one, "--noise", false}, Flag{"bench" + one, "--blocks", true}, Flag{"validate" + one, "--seed", true},
        Flag{"bench" + one, "--seed", true}, Flag{"range" + one, "--seed", true}, Flag{"cp" + one, "--seed", true},
        Flag{"replay" + one, "--seed", true}, Flag{"cp" + one, "--degree", true}, Flag{"cp" + one, "--segment", true},
        Flag{"replay" + one, "--walk", true}, Flag{"replay" + one, "--step", true}})
    for (const std::string& value : {std::string("nan"), std::string("-nan"), std::string("inf"), std::string("-1"),
                                     std::string("5x"), std::string("1e400"), std::string("99999999999999999999"), digits}) {
      if (!flag.integer && value == "99999999999999999999") continue;
      const std::string kind = flag.integer ? ": expected an integer in [" : ": expected a finite number above 0";
      expect_usage_error(flag.command + " " + flag.name + " " + value, flag.name + kind);
      expect_usage_error(flag.command + " " + flag.name + " " + value, "got '" + value + "'");
    }
  expect_usage_error("cp" + one + " --segment 010", "--segment: expected an integer in [1, 9223372036854775807], got '010'");
  expect_usage_error("bench" + one + " --min-time 1 --max-time 0.5",
                     "--min-time: expected at most the 0.5 s of --max-time, got 1");
  for (const char* axis : {"kscale", "scale", "v=normal", "keys=rho", "beta=const", "HK", "slots", "seed"})
    for (const std::string& value : {std::string("nan"), std::string("1e400"), std::string("5x"), std::string("-1"), digits})
      expect_usage_error("validate" + one + " --set " + axis + "=" + value,
                         "--set " + std::string(axis) + "=" + value + ": ");
}

TEST_F(Cli, takes_axes_by_their_long_names) {
  const Ran r = run("validate --backend reference.recurrent --list --set io=f16 --set lengths=63+65 --case" + quoted(kCase));
  EXPECT_EQ(r.out,
            "gdn/fwd/len=63+65,HK=1,HV=2,K=8,V=4/f16/gate=mild/keys=iid/precise/seed=3 reference.recurrent accuracy\n");
  expect_usage_error("validate --set lengths=x --case" + quoted(kCase), "--set lengths=x: lengths: expected an integer");
  expect_usage_error("validate --set len=x --case" + quoted(kCase), "--set len=x: len: expected an integer");
  const std::string given = "validate --op gdn --tensors" + quoted(dumped("reference.recurrent"));
  expect_usage_error(given + "--set lengths=1", "--set lengths=1: the tensors of the file say otherwise");
}

TEST_F(Cli, runs_once_what_is_asked_for_twice) {
  const std::string one = "--case" + quoted(kCase), on = "validate --backend reference.recurrent ";
  const std::string id = std::string(kCase) + " reference.recurrent accuracy\n";
  EXPECT_EQ(run(on + one + one + "--list").out, id);
  const std::string other = "--case" + quoted("gdn/fwd/len=5+0+3,HK=1,HV=2,K=8,V=4/seed=4");
  EXPECT_EQ(run(on + other + one + "--seed 3 --list").out, id);
  EXPECT_EQ(run(on + one + other + one + "--shard 1/2 --list").out, id);
  const auto sweep = [&](const char* name, const std::string& rest) {
    return quoted(
        written(name, R"({"schema": "deltagauge.sweep/1", "cases": [")" + std::string(kCase) + R"("])" + rest + "}"));
  };
  const std::string plain = sweep("plain.json", "");
  EXPECT_EQ(run(on + plain + plain + one + "--list").out, id);
  const std::string checks = sweep("checks.json", R"(, "checks": ["causal"])");
  EXPECT_EQ(run(on + plain + checks + "--list").out, id + std::string(kCase) + " reference.recurrent causal\n");
}

TEST_F(Cli, refuses_flags_that_would_be_ignored) {
  const std::string one = "validate --backend reference.recurrent --case" + quoted(kCase);
  for (const char* flag : {"--shard", "--json", "--report", "--seed", "--tensors", "--op", "--staging", "--filter"})
    for (const std::string& none : {std::string(flag) + " ''", std::string(flag) + "="})
      expect_usage_error(one + none, "expected a value, got none");
  expect_usage_error(one + "--list --json -", "--list: expected no --json beside it");
  expect_usage_error(one + "--list --isolate --report" + quoted(file("r")),
                     "--list: expected no --report, --isolate beside it");
  const std::string path = quoted(dumped("reference.recurrent")), given = "validate --op gdn --tensors" + path;
  expect_usage_error(given + "--shard 1/2", "--shard: expected none beside --tensors");
  expect_usage_error(given + "--seed 3", "--seed: expected none beside --tensors");
  expect_usage_error(given + "--set keys=repeated", "how inputs are drawn");
  EXPECT_EQ(run(given + "--backend file --filter 'nothing*'").status, 3);
  EXPECT_EQ(run(given + "--backend file --filter 'case.safe*'").status, 0);
}

TEST_F(Cli, names_the_file_and_the_place_of_what_is_wrong_in_it) {
  const auto sweep = [&](const std::string& rest) {
    return "validate" + quoted(written("s.json", R"({"schema": "deltagauge.sweep/1", )" + rest + "}"));
  };
  const std::string cases = R"("cases": [")" + std::string(kCase) + R"("])";
  expect_usage_error(sweep(cases + ", " + cases), "s.json: $: the key 'cases' stands twice");
  expect_usage_error(sweep(cases + R"(, "checks": ["speed"])"), "s.json: $.checks[0]: check: expected one of accuracy");
  expect_usage_error(sweep(cases + R"(, "note": 1e400)"), "s.json: not JSON");
  expect_usage_error("validate" + quoted(file("")), "expected a file, got a directory");
  Safetensors content = read_safetensors(dumped("reference.recurrent"));
  content.tensors["Beta"] = content.tensors["beta"];
  expect_usage_error("validate --op gdn --tensors" + quoted(written("t.st", to_safetensors(content))),
                     "t.st: tensor 'Beta'");
}

TEST_F(Cli, reads_a_dumped_case_without_tokens) {
  for (const char* axes : {"len=0", "len=0+0,cap=4"}) {
    const std::string out = quoted(file("empty.safetensors"));
    EXPECT_EQ(run("case dump 'gdn/fwd/" + std::string(axes) + ",K=8,V=4/bf16' --out" + out + "--backend oracle.f64").status,
              0);
    const Ran r = run("validate --op gdn --backend file --tensors" + out);
    EXPECT_EQ(r.status, 0) << r.err;
  }
}

TEST_F(Cli, shows_a_failed_refusal_again_from_a_path_with_a_quote_in_it) {
  const std::string path = written("it's.json", R"({"schema": "deltagauge.sweep/1", "cases": [{"id": ")" +
                                                    std::string(kCase) + R"(", "expect": "refused"}]})");
  const Ran r = run("validate \"" + path + "\" --backend reference.recurrent");
  EXPECT_EQ(r.status, 1) << r.err;
  const auto again = r.out.find("again: deltagauge ");
  ASSERT_NE(again, std::string::npos);
  const std::string repro = r.out.substr(again + 18, r.out.find('\n', again) - again - 18);
  EXPECT_EQ(run(repro).status, 1) << repro;
}

TEST_F(Cli, writes_the_report_into_what_the_path_stands_for) {
  const std::string one = "validate --backend reference.recurrent --case" + quoted(kCase) + "--json ";
  ASSERT_EQ(std::system(("mkfifo" + quoted(file("fifo"))).c_str()), 0);
  const std::string reader = "cat" + quoted(file("fifo")) + ">" + quoted(file("read")) + "& ";
  FILE* pipe = ::popen((reader + DELTAGAUGE_BINARY " " + one + quoted(file("fifo")) + "> /dev/null; wait").c_str(), "r");
  EXPECT_EQ(::pclose(pipe), 0);
  EXPECT_TRUE(fs::is_fifo(file("fifo")));
  EXPECT_EQ(reports::load_report(file("read")).results.size(), 1u);
}

TEST_F(Cli, refuses_outputs_it_cannot_write_before_the_run) {
  const std::string plain = written("plain", "");
  expect_usage_error("validate --backend reference.recurrent --case" + quoted(kCase) + "--report" + quoted(plain),
                     "directory");
  expect_usage_error("validate --backend reference.recurrent --case" + quoted(kCase) + "--json" + quoted(plain + "/r.json"),
                     "directory");
}

TEST_F(Cli, exits_3_when_nothing_is_judged) {
  EXPECT_EQ(run("validate" + quoted(config()) + "--filter 'no such case'").status, 3);
  EXPECT_EQ(run("validate" + quoted(config()) + "--filter 'no such case' --list").status, 3);
  EXPECT_EQ(run("selftest --filter 'no such fault'").status, 3);
}

TEST_F(Cli, a_missing_gpu_is_a_skip_unless_one_is_required) {
  const std::string base = "validate --backend cuda.gdn.recurrent --case" + quoted(kCase);
  const int status = run(base).status, required = run(base + "--require-gpu").status;
  EXPECT_TRUE((status == 3 && required == 1) || (status == 0 && required == 0)) << status << " " << required;
}

TEST_F(Cli, kernels_on_the_cpu_are_asked_for_by_a_flag_also_beside_a_sweep_that_names_none) {
  for (const char* command : {"validate", "bench", "range", "replay"})
    expect_usage_error(command + std::string(" --backend 'host.*' --case") + quoted(kCase),
                       "--backend: 'host.*' matches host.* alone, which validate has with --host HOW");
  const int status = run("validate --host mode=late --backend host.gdn.recurrent --case" + quoted(kCase)).status;
  EXPECT_TRUE(status == 0 || status == 3) << status;  // 3: a build without them
  const Ran listed = run("validate configs/gdn/smoke.json --host mode=late --backend host.gdn.chunk_sm90 --list");
  EXPECT_EQ(listed.status, 0);
  EXPECT_NE(listed.out.find("host.gdn.chunk_sm90 accuracy"), std::string::npos) << listed.out;
}

TEST_F(Cli, a_case_that_breaks_is_an_error_row_and_exit_2) {
  const Ran r =
      run("validate --backend reference.recurrent --json - --case gdn/fwd/len=64/gate=none/beta=const=2/kscale=1.5");
  EXPECT_EQ(r.status, 2);
  const reports::Report report = reports::parse_report(r.out, "stdout");
  ASSERT_EQ(report.results.size(), 1u);
  EXPECT_EQ(report.results[0].outcome, reports::Outcome::error);
  EXPECT_NE(report.results[0].reason.find("diverge"), std::string::npos);
}

TEST_F(Cli, lists_come_from_the_tables) {
  const auto names = [&](const std::string& what, const char* key) {
    std::vector<std::string> out;
    for (const auto& row : Json::parse(run("list " + what + " --json").out)) out.push_back(row.at(key));
    return out;
  };
  std::vector<std::string> expected;
  for (const OpInfo& op : ops()) expected.emplace_back(op.name);
  EXPECT_EQ(names("ops", "name"), expected);
  expected.clear();
  for (const CheckInfo& check : checks()) expected.emplace_back(check.name);
  EXPECT_EQ(names("checks", "name"), expected);
  expected.clear();
  for (const auto& staging : reference::stagings()) expected.emplace_back(staging.name);
  EXPECT_EQ(names("stagings", "name"), expected);
  expected.clear();
  for (const Axis& axis : axes()) expected.emplace_back(axis.name);
  EXPECT_EQ(names("axes", "name"), expected);
  const auto backends = names("backends", "name");
  for (const char* one : {"oracle.f64", "reference.recurrent", "cuda.gdn.recurrent", "host.gdn.recurrent",
                          "reference.peer.ex2.ftz", "reference.cp.chunk64.io", "cuda.cp.chunk_sm80"})
    EXPECT_NE(std::find(backends.begin(), backends.end(), one), backends.end()) << one;
  for (const char* what : {"variants", "regimes", "configs"}) {
    EXPECT_FALSE(names(what, what == std::string("configs") ? "path" : "name").empty()) << what;
    EXPECT_EQ(run("list " + std::string(what)).status, 0);
  }
}

TEST_F(Cli, shows_a_case_in_words) {
  const Ran r = run("case show" + quoted(kCase));
  EXPECT_EQ(r.status, 0);
  EXPECT_EQ(r.out.substr(0, r.out.find('\n')), kCase);
  for (const char* part :
       {"gated delta rule", "logsigmoid(N(0,1)) / 16", "[8, 2, 4]", "cu_seqlens", "8 tokens in 3 sequences", "flop"})
    EXPECT_NE(r.out.find(part), std::string::npos) << part << "\n" << r.out;
}

TEST_F(Cli, says_its_version) {
  const Ran r = run("--version");
  EXPECT_EQ(r.status, 0);
  EXPECT_TRUE(r.out.starts_with("deltagauge 0.")) << r.out;
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_EQ(run("validate --help").status, 0);
}

TEST_F(Cli, selftest_prints_the_kill_matrix_of_what_matches) {
  const Ran r = run("selftest --filter 'chunk64.f32'");
  EXPECT_EQ(r.status, 0) << r.out;
  EXPECT_NE(r.out.find("correct variants passed"), std::string::npos);
  const Json root = Json::parse(run("selftest --json --filter 'chunk64.f32'").out);
  EXPECT_EQ(root["faults"], 0);
  EXPECT_EQ(root["correct"], root["passed"]);
  EXPECT_EQ(root["rows"][0]["variant"], "chunk64.f32");
}

}  // namespace
}  // namespace deltagauge::validate
