// The transform of a gdn call's gate, as the kernels' arguments name it.
#pragma once
#include "core/problem.h"
#include "kernels/gdn/gdn.h"

namespace deltagauge::validate {

inline kernels::gdn::Transform transform_of(const Problem& p) {
  using kernels::gdn::Transform;
  if (p.raw_gate == Switch::off) return Transform::none;
  return p.transform == "bounded" ? Transform::bounded : Transform::softplus;
}

}  // namespace deltagauge::validate
