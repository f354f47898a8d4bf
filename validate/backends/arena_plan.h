// ArenaPlan: a call answered on the CPU, with its tensors between guard bands (core/arena.h), so that the guard check means
// the same for a CPU backend as for a kernel. Inputs are taken from the arena's image, outputs written back into it.
#pragma once
#include <functional>
#include <string_view>

#include "core/arena.h"
#include "core/backend.h"

namespace deltagauge::validate {

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
  std::vector<std::string> input_names_, output_names_;
  Compute compute_;
  Tensors taps_;
};

}  // namespace deltagauge::validate
