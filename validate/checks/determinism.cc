#include "validate/checks/determinism.h"

#include "validate/ladder/trial.h"

namespace deltagauge::validate {

Verdict Determinism::run(Context& context, const Backend& backend) const {
  Trial trial(context, backend, {});
  return repeat(trial);
}

}  // namespace deltagauge::validate
