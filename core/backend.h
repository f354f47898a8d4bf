// Backend: something that answers a Problem (oracle, reference, CUDA kernel, plugin, planted fault). Plan: one prepared
// call. Registry: the list, filled by explicit calls in main.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/arena.h"
#include "core/problem.h"
#include "core/tensor.h"

namespace deltagauge {

struct PlanOptions {
  Fill fill = Fill::nan;  // of guards, workspace and unwritten outputs
  bool taps = false;      // also return the named intermediates the backend can give (Ainv, S, v_new, ...)
};

class Plan {
 public:
  virtual ~Plan() = default;
  virtual void run() = 0;               // may be called again: starts from the same inputs and fresh sentinels
  virtual Tensors outputs() const = 0;  // of the last run, by the names of OpInfo::outputs; taps too when asked for
  // Damage of the last run seen in memory (Arena::audit), and per output the unwritten mask (Arena::untouched).
  virtual std::vector<std::string> audit() const { return {}; }
  virtual std::vector<bool> untouched(std::string_view /*output*/) const { return {}; }
};

// A plan on a device. enqueue() neither allocates nor synchronises, so it can be captured in a graph.
class DevicePlan : public Plan {
 public:
  virtual void enqueue(void* stream) = 0;  // a cudaStream_t
  // Other inputs of the same shapes, whatever their lengths, and fresh sentinels into the same memory.
  virtual void load(const Tensors& inputs) = 0;
  virtual void collect() = 0;  // takes what stands in that memory, for outputs(), audit() and untouched()
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual std::string_view name() const = 0;     // "cuda.gdn.chunk_sm80"
  virtual std::string_view summary() const = 0;  // one line for list
  // Why this problem cannot be run, or nothing when it can.
  virtual std::optional<std::string> unsupported(const Problem& problem) const = 0;
  // The name of the staging (reference/staging.h) that rounds where this backend rounds: the budget comes from it.
  virtual std::string_view staging(const Problem& problem) const = 0;
  // The name of the backend that the library takes for this problem where a caller leaves the choice among variants to it;
  // empty when this is no such variant.
  virtual std::string chosen(const Problem& /*problem*/) const { return {}; }
  virtual std::unique_ptr<Plan> plan(const Problem& problem, const Tensors& inputs, const PlanOptions& options) const = 0;
};

class Registry {
 public:
  void add(std::unique_ptr<Backend> backend);                      // throws Error on a second backend of the same name
  std::vector<const Backend*> match(std::string_view glob) const;  // "cuda.*", "a,b": comma separated globs
  const Backend& get(std::string_view name) const;                 // throws Error naming the known ones

 private:
  std::vector<std::unique_ptr<Backend>> backends_;
};

bool glob_match(std::string_view pattern, std::string_view text);  // * and ?

}  // namespace deltagauge
