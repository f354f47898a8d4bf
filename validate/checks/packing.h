// packing: each sequence of the case run alone gives the bits that it gives among the others, outputs and final state. For a
// dense layout this is a batch of one against a batch of N.
#pragma once
#include "validate/checks/check.h"

namespace deltagauge::validate {

class Packing : public Check {
 public:
  CheckInfo info() const override { return {"packing", "each sequence alone gives the same bits as in the batch"}; }
  Verdict run(Context& context, const Backend& backend) const override;
};

}  // namespace deltagauge::validate
