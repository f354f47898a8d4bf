// ArenaPlan: a call answered on the CPU, with its tensors between guard bands (core/arena.h), so that the guard check means
// the same for a CPU backend as for a kernel. Inputs are taken from the arena's image, outputs written back into it.
#pragma once
#include <functional>
#include <string>
#include <string_view>

#include "core/arena.h"
#include "core/backend.h"

namespace deltagauge::validate {

// Lays the tensors of a call out: its inputs, then its outputs. An input that an output advances in place has no memory of
// its own.
void add_tensors(Arena& arena, const Problem& problem, const Tensors& inputs);
void replace_inputs(Arena& arena, const Problem& problem, const Tensors& inputs);  // others of the same shapes
// The name of a tensor's memory in such an arena.
std::string memory_of(const Problem& problem, std::string_view tensor);
Tensors inputs_in(const Arena& arena, const Problem& problem);   // as they stand now, contiguous
Tensors outputs_in(const Arena& arena, const Problem& problem);  // the same
// Writes the judged rows of an output into its memory.
void put_rows(Arena& arena, const Problem& problem, std::string_view output, const Tensor& result);

class ArenaPlan : public Plan {
 public:
  // Inputs to outputs (and, when asked for, taps), with shapes of the op; rows past the active end are not used.
  using Compute = std::function<Tensors(const Tensors& inputs)>;

  ArenaPlan(const Problem& problem, const Tensors& inputs, const PlanOptions& options, Compute compute);
  void run() override;
  Tensors outputs() const override;
  std::vector<std::string> audit() const override { return arena_.audit(); }
  std::vector<bool> untouched(std::string_view output) const override { return arena_.untouched(output); }

 protected:
  Arena arena_;
  const Problem problem_;

 private:
  Compute compute_;
  Tensors taps_;
};

}  // namespace deltagauge::validate
