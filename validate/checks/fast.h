// fast: math=fast and math=precise of a backend on the same inputs, each held against the budgets of its own mode. Tensors
// of the fast run are filed under their names, those of the precise run as "o.precise". Values:
//   flushed_tokens    tokens of o with an element that fast gives as 0, where precise and the right value are not 0
//   subnormal_tokens  tokens whose decay from the start or to the end of their chunk is subnormal in f32, not 0: what a
//                     fast exponential may flush
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Fast : public Check {
 public:
  CheckInfo info() const override { return {"fast", "fast and precise math side by side, and what fast loses to 0"}; }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
