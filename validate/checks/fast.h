// fast: math=fast and math=precise of a backend on the same inputs, each held against the budgets of its own mode. Tensors
// of the fast run are filed under their names, those of the precise run as "o.precise". Values:
//   flushed_tokens    tokens of o with an element that fast gives as 0, where precise and the right value are not 0
//   flushed_states    (sequence, head) states with such an element
//   subnormal_tokens  tokens that read the state before their chunk or an earlier token of it, or are written to the state
//                     after it, through a decay that is subnormal in f32, not 0: what a fast exponential may flush
// The note, or the reason of a failure, names them by sequence, head and token.
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Fast : public Check {
 public:
  CheckInfo info() const override { return {"fast", "fast and precise math side by side, and what fast loses to 0"}; }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
