#include "validate/cli_against.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <map>
#include <optional>
#include <tuple>

#include "core/error.h"
#include "reports/json.h"
#include "validate/cli_output.h"

namespace deltagauge::validate::cli {
namespace {

namespace fs = std::filesystem;
using reports::Report;

// A folder that ends with its owner.
struct Scratch {
  std::string path = (fs::temp_directory_path() / ("deltagauge." + std::to_string(::getpid()))).string();
  Scratch() { fs::create_directories(path); }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

std::vector<std::string> command_of(const std::string& binary, const BenchArgs& args, const std::string& json) {
  std::vector<std::string> words{binary, "bench"};
  words.insert(words.end(), args.configs.begin(), args.configs.end());
  const auto add = [&](const char* flag, const std::string& value) { words.insert(words.end(), {flag, value}); };
  for (const std::string& id : args.cases) add("--case", id);
  for (const std::string& text : args.settings) add("--set", text);
  for (const std::string& timer : args.timers) add("--timer", timer);
  if (!args.seed.empty()) add("--seed", args.seed);
  if (!args.shard.empty()) add("--shard", args.shard);
  add("--backend", args.backend);
  add("--oracle", args.oracle);
  add("--filter", args.filter);
  add("--min-time", std::to_string(args.min_time));
  add("--max-time", std::to_string(args.max_time));
  add("--noise", std::to_string(args.max_noise));
  if (args.require_gpu) words.push_back("--require-gpu");
  add("--json", json);
  words.push_back("--quiet");
  return words;
}

// Runs it with nothing on stdout, which is this run's. Exit status 1 is a report too: one with a failed gate. Nothing: it
// was interrupted.
std::optional<Report> run(const std::string& binary, const BenchArgs& args, const std::string& json) {
  std::vector<std::string> words = command_of(binary, args, json);
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    ::dup2(STDERR_FILENO, STDOUT_FILENO);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child) fail(binary, ": no process: ", std::strerror(errno));
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == 127) fail("--against: cannot run ", binary);
  if (Interrupts::asked()) return std::nullopt;
  if (code != 0 && code != 1) fail(binary, ": expected exit status 0 or 1 from its bench, got ", code);
  return reports::load_report(json);
}

}  // namespace

Against run_against(const BenchArgs& args) {
  const Scratch scratch;
  const std::string own = fs::read_symlink("/proc/self/exe").string(), json = scratch.path + "/report.json";
  Against out;
  std::map<std::tuple<std::string, std::string, std::string>, std::size_t> places;
  for (int block = 0; block < args.blocks; ++block) {
    if (!args.quiet) std::cerr << "deltagauge: block " << block + 1 << " of " << args.blocks << "\n";
    std::vector<Report> runs;
    for (const std::string& binary : {args.against, own, own, args.against}) {
      std::optional<Report> one = run(binary, args, json);
      if (!one) break;
      runs.push_back(std::move(*one));
    }
    if (runs.size() < 4) break;
    ++out.blocks;
    if (block == 0) {
      out.base = runs[0];
      out.fresh = runs[1];
    }
    constexpr std::vector<double> reports::compare::Block::*kTurn[4] = {
        &reports::compare::Block::base_first, &reports::compare::Block::fresh_first, &reports::compare::Block::fresh_second,
        &reports::compare::Block::base_second};
    for (std::size_t turn = 0; turn < 4; ++turn)
      for (const reports::Result& r : runs[turn].results) {
        if (!r.timing) continue;
        const auto [at, is_new] = places.try_emplace({r.test, r.backend, r.check}, out.rows.size());
        if (is_new) out.rows.push_back({r.test, r.backend, r.check, {}});
        auto& blocks = out.rows[at->second].blocks;
        blocks.resize(static_cast<std::size_t>(block) + 1);
        blocks.back().*kTurn[turn] = r.timing->samples;
      }
  }
  // A row that one of the runs did not give has nothing to be held against: the reports say why.
  std::erase_if(out.rows, [&](const reports::compare::InterleavedRow& row) {
    if (row.blocks.size() != static_cast<std::size_t>(out.blocks)) return true;
    for (const auto& b : row.blocks)
      if (b.base_first.empty() || b.fresh_first.empty() || b.fresh_second.empty() || b.base_second.empty()) return true;
    return false;
  });
  return out;
}

}  // namespace deltagauge::validate::cli
