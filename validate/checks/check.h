// Check: one question put to a backend about one case. A check that cannot be run gives a skip with its reason, never a
// pass.
#pragma once
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "validate/context.h"
#include "validate/judge.h"
#include "validate/run.h"

namespace deltagauge::validate {

class Check {
 public:
  virtual ~Check() = default;
  virtual CheckInfo info() const = 0;
  // The backend supports the case. Throws Error when the machinery fails.
  virtual Verdict run(Context& context, const Backend& backend) const = 0;
};

std::span<const Check* const> all_checks();      // in the order of checks()
const Check& find_check(std::string_view name);  // throws Error naming the known ones
// Whether a name that a user gives means this check: its own, or that of its group ("ladder" for "ladder.repeat").
bool names_check(std::string_view wanted, std::string_view check);
std::vector<const Check*> find_checks(std::string_view wanted);  // all that it means; throws Error as find_check does

// A plan, and a run of one, as spans of the row.
std::unique_ptr<Plan> planned(const Backend& backend, const Problem& problem, const Tensors& inputs,
                              const PlanOptions& options = {});
void run_plan(Plan& plan);
// Plans, runs once and returns what came out.
Tensors outputs_of(const Backend& backend, const Problem& problem, const Tensors& inputs, const PlanOptions& options = {});

// Every output of the case that differs in a bit on judged rows, as "o: ..." failures.
void expect_same_bits(const Problem& problem, const Tensors& got, const Tensors& want, std::string_view where,
                      Verdict& verdict);

}  // namespace deltagauge::validate
