// accuracy: every output against the oracle, by the budgets of budget.h and the ceilings of the config. A ceiling is a
// figure that a named other kernel reached on this case; it is a second limit, not a looser one.
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Accuracy : public Check {
 public:
  CheckInfo info() const override {
    return {"accuracy", "outputs against the oracle, within derived budgets and the config's ceilings"};
  }
  Verdict run(Context& context, const Backend& backend) const override;
};

// The verdict on outputs that a backend of this staging gave.
Verdict judge_outputs(Context& context, std::string_view staging, const Tensors& got);

}  // namespace deltagauge::validate
