#include "validate/checks/packing.h"

#include "validate/ladder/trial.h"

namespace deltagauge::validate {

Verdict Packing::run(Context& context, const Backend& backend) const {
  Trial trial(context, backend, {});
  return each_separate(trial);
}

}  // namespace deltagauge::validate
