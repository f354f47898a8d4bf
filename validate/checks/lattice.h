// lattice: on data=lattice every stage is exact in bf16 and f16, so the outputs must equal the rounded oracle, whatever the
// chunk size and order of summation. No budget. -0 equals +0, since the order of summation decides which one a zero is.
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Lattice : public Check {
 public:
  CheckInfo info() const override {
    return {"lattice", "data=lattice cases: outputs equal the exact answer, zero tolerance"};
  }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
