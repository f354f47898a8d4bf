// determinism: the same plan run again and again, and planned anew, gives the same bits.
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Determinism : public Check {
 public:
  CheckInfo info() const override { return {"determinism", "repeated runs agree in every bit"}; }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
