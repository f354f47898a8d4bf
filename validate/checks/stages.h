// stages: the named intermediates (taps) that a backend gives, against the oracle's, each with the budget of the same tap of
// the emulator; Ainv also by its free bound. Taps the backend does not give are not judged; none at all is a skip.
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Stages : public Check {
 public:
  CheckInfo info() const override {
    return {"stages", "intermediates (Ainv S v_new ...) against the oracle's, within derived budgets"};
  }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
