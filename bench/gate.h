// The accuracy gate of a timing: what a run gave, judged by the budgets of its staging, on as many (sequence, head) parts of
// the case as the oracle can afford; the rest must at least be finite.
#pragma once
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "core/backend.h"
#include "core/sweep.h"
#include "oracle/oracle.h"
#include "validate/context.h"
#include "validate/judge.h"
#include "validate/slice.h"

namespace deltagauge::bench {

// One case's gate; oracle and emulator answers are kept for the next backend.
class Gate {
 public:
  // test and inputs must outlive the gate. Judges at most token_heads (token, head) pairs, but at least one part.
  Gate(const SweepCase& test, const Tensors& inputs, oracle::Precision precision, std::int64_t token_heads);

  validate::Verdict judge(std::string_view staging, const Tensors& outputs);

 private:
  struct Judged {
    validate::Part part;
    SweepCase test;
    std::unique_ptr<validate::Context> context;
  };
  const Problem& problem_;
  std::vector<Judged> judged_;
};

}  // namespace deltagauge::bench
