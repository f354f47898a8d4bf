// guard: what the call did to memory. Planned twice, in arenas filled with tagged NaN and with 1e30: guards and inputs must
// stand unchanged in both; outputs must agree in every bit (else something read a guard or an unwritten element); every
// element of an active row must be written and every element past the active end left alone (an element that still holds
// both sentinels was not written).
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Guard : public Check {
 public:
  CheckInfo info() const override {
    return {"guard", "nothing read or written out of bounds, all outputs written, inputs and suffix untouched"};
  }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
