// The list of ops the oracle answers, in one number type.
#pragma once
#include <string_view>

#include "core/error.h"
#include "oracle/gate.h"
#include "oracle/gdn.h"
#include "oracle/gdn_decode.h"
#include "oracle/l2norm.h"

namespace deltagauge::oracle {

// Fills the tensors that answer already holds (unanswered, in the shapes of OpInfo::outputs) for the active rows.
using Forward = void (*)(const Call&, Answer& answer);

template <class Real>
Forward forward_in(std::string_view op) {
  struct Row {
    std::string_view op;
    Forward forward;
  };
  static constexpr Row kRows[] = {
      {"gdn", gdn<Real>}, {"gdn_decode", gdn_decode<Real>}, {"l2norm", l2norm<Real>}, {"gate", gate<Real>}};
  std::string known;
  for (const Row& row : kRows) {
    if (row.op == op) return row.forward;
    known += " " + std::string(row.op);
  }
  fail("oracle: expected an op of", known, ", got '", op, "'");
}

Forward forward_quad(std::string_view op);  // wide.cc
Forward forward_oct(std::string_view op);

}  // namespace deltagauge::oracle
