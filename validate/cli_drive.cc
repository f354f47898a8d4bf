// The part that validate, bench, range, replay and cp share: what is known from --resume, what a worker does, what an
// interrupt leaves.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <span>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "reports/compare/merge.h"
#include "reports/json.h"
#include "validate/cli_output.h"
#include "validate/cli_run.h"
#include "validate/isolate.h"
#include "validate/partial.h"

namespace deltagauge::validate::cli {
namespace {

std::size_t jobs_of(const Driver& driver, const Sweep& sweep) {
  return driver.jobs ? driver.jobs(sweep) : driver.list(sweep).size();
}

// What a failed row's own command line needs besides the case: what the verdict depends on and how it was come by.
std::string repro_flags(const RunArgs& args) {
  std::string flags;
  if (args.oracle != "auto") flags += " --oracle " + args.oracle;
  if (args.require_gpu) flags += " --require-gpu";
  if (args.timeout > 0) flags += fmt::format(" --timeout {}", args.timeout);
  if (args.isolate) flags += " --isolate";
  return flags;
}

bool same_row(const reports::Result& a, const reports::Result& b) {
  return std::tie(a.test, a.backend, a.check, a.name) == std::tie(b.test, b.backend, b.check, b.name);
}

// The argv of a worker: this run's, and its task right behind the subcommand.
WorkerCommand worker_command(std::vector<std::string> argv) {
  return [argv = std::move(argv)](const std::string& task) {
    std::vector<std::string> words = argv;
    words.insert(words.begin() + 2, {"--worker", task});
    return words;
  };
}

// The jobs of a worker's task, the rows of each sent as soon as they are there.
int work(const RunArgs& args, const Driver& driver, const std::vector<Sweep>& sweeps) {
  const WorkerTask task = worker_task(args.worker);
  Loop loop;
  loop.repro_flags = repro_flags(args);
  loop.done = [&](std::span<const reports::Result> rows) { send_rows(task, rows); };
  std::size_t end = 0;
  for (const Sweep& sweep : sweeps) {
    loop.first = std::exchange(end, end + jobs_of(driver, sweep));
    loop.only.clear();
    for (const std::size_t number : task.numbers)
      if (number >= loop.first && number < end) loop.only.push_back(number);
    reports::Report report;
    if (!loop.only.empty()) driver.run(sweep, loop, report);
  }
  return 0;
}

// The rows of all sweeps, until an interrupt asks to stop. The number of jobs.
std::size_t judge(const RunArgs& args, const Driver& driver, const std::vector<Sweep>& sweeps, const Earlier& earlier,
                  PartialReport& partial, reports::Report& report) {
  std::size_t total = 0;
  for (const Sweep& sweep : sweeps) total += jobs_of(driver, sweep);
  report.jobs_left = static_cast<std::int64_t>(total);
  Progress progress(total);
  Workers workers(worker_command(args.argv), args.timeout);
  Loop loop;
  loop.repro_flags = repro_flags(args);
  loop.stopped = Interrupts::asked;
  loop.known = [&](const std::string& job) { return earlier.find(job); };
  if (apart(args)) loop.workers = &workers;
  loop.done = [&](std::span<const reports::Result> rows) {
    --report.jobs_left;
    const bool known = !rows.empty() && earlier.find(rows[0].job);
    if (!args.quiet) progress.step(rows, known ? Progress::Step::taken_over : Progress::Step::judged);
    if (!known) partial.update(report);
  };
  for (const Sweep& sweep : sweeps) {
    driver.run(sweep, loop, report);
    loop.first += jobs_of(driver, sweep);
  }
  progress.clear();
  return total;
}

}  // namespace

Earlier::Earlier(const std::string& file, reports::Report& now) {
  if (file.empty()) return;
  namespace compare = reports::compare;
  reports::Report report = reports::load_report(file);
  const std::string where = "--resume " + file;
  compare::require_same_run(where, now, report);
  compare::require_same_words(where, compare::words_of_verdicts(now.argv), compare::words_of_verdicts(report.argv));
  now.roofline = report.roofline;
  std::string last;
  for (reports::Result& row : report.results) {
    row.job = reports::job_of(row);
    auto& rows = rows_[row.job];
    // A case that two configs hold was run twice: one of them stands for both.
    const bool again = !rows.empty() && (row.job != last || same_row(rows[0], row));
    last = row.job;
    if (!again) rows.push_back(std::move(row));
  }
  // What was not judged there is asked again: there may be a reason less.
  std::erase_if(rows_, [](const auto& job) {
    return std::any_of(job.second.begin(), job.second.end(), [](const reports::Result& row) {
      return row.outcome == reports::Outcome::skip || row.outcome == reports::Outcome::error;
    });
  });
}

const std::vector<reports::Result>* Earlier::find(const std::string& job) const {
  const auto found = rows_.find(job);
  return found == rows_.end() ? nullptr : &found->second;
}

bool apart(const RunArgs& args) { return args.isolate || args.timeout > 0; }

int drive(const RunArgs& args, const Driver& driver) {
  if (args.configs.empty() && args.cases.empty()) fail(driver.name, ": expected CONFIG... or --case ID");
  for (const std::string& path : args.configs)
    if (apart(args) && args.worker.empty() && std::filesystem::exists(path) && !std::filesystem::is_regular_file(path))
      fail(path, ": expected a file beside --isolate or --timeout, since every process reads it again");
  std::vector<reports::ConfigFile> files;
  const std::vector<Sweep> sweeps = sweeps_of(args, files, driver.prepare);
  return drive(args, driver, sweeps, std::move(files));
}

int drive(const RunArgs& args, const Driver& driver, const std::vector<Sweep>& sweeps,
          std::vector<reports::ConfigFile> files) {
  if (args.list) {
    std::string asked = outputs_asked(args.outputs);
    for (const auto& [flag, given] :
         {std::pair{"--resume", !args.resume.empty()}, {"--isolate", args.isolate}, {"--timeout", args.timeout > 0}})
      if (given) asked += (asked.empty() ? "" : ", ") + std::string(flag);
    if (!asked.empty()) fail("--list: expected no ", asked, " beside it, nothing is run");
    bool any = false;
    for (const Sweep& sweep : sweeps)
      for (const std::string& line : driver.list(sweep)) {
        std::cout << line << "\n";
        any = true;
      }
    return any ? 0 : 3;
  }
  if (!args.worker.empty()) return work(args, driver, sweeps);

  require_writable_outputs(args);
  reports::Report report = new_report(args, std::move(files));
  const Earlier earlier(args.resume, report);
  PartialReport partial(json_files(args.outputs));
  const Interrupts interrupts;
  const std::size_t total = judge(args, driver, sweeps, earlier, partial, report);
  if (driver.amend) driver.amend(report);
  write_outputs(args, report);
  partial.remove();
  if (report.jobs_left) {
    std::cerr << "deltagauge: interrupted, " << report.jobs_left << " of " << total << " jobs left; --resume goes on\n";
    return 2;
  }
  if (report.results.empty()) std::cerr << "deltagauge: no case and backend match\n";
  return driver.finish(report, args.outputs.json == "-" ? std::cerr : std::cout);
}

}  // namespace deltagauge::validate::cli
