// Jobs judged in child processes, so that one that crashes or hangs costs its own row only. A child executes the same
// program again (a forked copy could use neither CUDA nor OpenMP), with a word that makes it a worker: it judges the jobs
// whose numbers it was given, one after the other, and writes each row to a pipe.
#pragma once
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "reports/report.h"

namespace deltagauge::validate {

using WorkerCommand = std::function<std::vector<std::string>(const std::string& task)>;  // the argv of a worker

class Workers {
 public:
  // timeout: seconds a job may take, the start of its process included; 0: no limit.
  Workers(WorkerCommand command, double timeout);
  ~Workers();  // ends the worker, if there is one
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

  // The row of job batch[0], from the worker that is to come to it next, or from a new one that gets the whole batch. When
  // the worker crashes or is too slow: row, as an error with the reason. After an error the next job gets a new process.
  reports::Result run(const std::vector<std::size_t>& batch, reports::Result row);

 private:
  enum class Got { row, end, nothing };

  void start(const std::vector<std::size_t>& batch);
  Got receive(std::string& row);  // nothing: within the time limit
  int end();                      // kills and waits; the wait status

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
WorkerTask worker_task(std::string_view word);                         // throws Error
void send_row(const WorkerTask& task, const reports::Result& result);  // throws Error when nobody listens

}  // namespace deltagauge::validate
