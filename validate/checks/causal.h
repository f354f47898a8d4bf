// causal: the second half of every sequence is replaced; the outputs of the first half must keep every bit. Replacement rows
// are the old ones in reverse order, negated (g doubled, beta halved), so norms and ranges stay what they were.
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Causal : public Check {
 public:
  CheckInfo info() const override { return {"causal", "later tokens changed, earlier outputs keep every bit"}; }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
