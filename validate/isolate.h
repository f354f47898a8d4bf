// Jobs judged in child processes, so that one that crashes or hangs costs its own row only. A child executes the same
// program again (a forked copy could use neither CUDA nor OpenMP), with a word that makes it a worker: it judges the jobs
// whose numbers it was given, one after the other, and writes the rows of each to a pipe.
#pragma once
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reports/report.h"
#include "validate/loop.h"

namespace deltagauge::validate {

using WorkerCommand = std::function<std::vector<std::string>(const std::string& task)>;  // the argv of a worker

class Workers {
 public:
  // timeout: seconds a job may take, the start of its process included; 0: no limit.
  Workers(WorkerCommand command, double timeout);
  ~Workers();  // ends the worker, if there is one
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // The rows of job batch[0], from the worker that is to come to it next, or from a new one that gets the whole batch. When
  // the worker crashes or is too slow: job.rows, as errors with the reason. After an error the next job gets a new process.
  std::vector<reports::Result> run(const std::vector<std::size_t>& batch, NamedJob job);

 private:
  enum class Got { rows, end, nothing };

  void start(const std::vector<std::size_t>& batch);
  Got receive(std::string& rows);  // nothing: within the time limit
  int end();                       // kills and waits; the wait status

  WorkerCommand command_;
  double timeout_;
  int process_ = -1, pipe_ = -1;
  std::string buffer_;                // read and not yet taken
  std::vector<std::size_t> pending_;  // what the worker still owes, the next one last
};

// The worker's side. A task is "FD:N,N,...": the descriptor to write to, and the numbers.
struct WorkerTask {
  int descriptor = -1;
  std::vector<std::size_t> numbers;
};
WorkerTask worker_task(std::string_view word);  // throws Error
// Those of a job. Throws Error when nobody listens.
void send_rows(const WorkerTask& task, std::span<const reports::Result> rows);

}  // namespace deltagauge::validate
