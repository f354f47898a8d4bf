#include "validate/judge.h"

#include <cmath>
#include <sstream>

#include "validate/floor.h"
#include "validate/mark.h"
#include "validate/thresholds.h"

namespace deltagauge::validate {
namespace {

std::string breach(std::string_view name, const reports::TensorMetrics& m) {
  std::ostringstream text;
  text.precision(4);
  if (m.non_finite) {
    text << name << ": " << m.non_finite << " elements are NaN or infinite where the right value is not, or the reverse";
  } else if (!(m.row_ratio <= kRowRatio)) {
    text << name << ": row error is " << m.row_ratio << " of its budget, limit " << kRowRatio;
  } else if (!(m.element_ratio <= kElementRatio)) {
    text << name << ": element error is " << m.element_ratio << " of its share of the row budget, limit " << kElementRatio;
  } else {
    return {};
  }
  if (m.worst) text << "; worst at " << to_string(m.worst->index) << ", got " << m.worst->got << ", want " << m.worst->want;
  return text.str();
}

}  // namespace

void Verdict::add_failure(const std::string& why) {
  outcome = reports::Outcome::fail;
  reason += (reason.empty() ? "" : "; ") + why;
}

Verdict skip(std::string reason) { return {reports::Outcome::skip, std::move(reason), {}}; }

Verdict unless_empty(Verdict verdict) {
  if (verdict.outcome != reports::Outcome::pass || verdict.compared > 0) return verdict;
  return skip("nothing to compare: no element of the case's outputs is judged");
}

void judge_tensor(std::string_view name, const Tensor& got, const Yardstick& yardstick, Verdict& verdict) {
  const Mark mark("judge");
  const auto metrics = measure(got, *yardstick.want, yardstick.rows, yardstick.budget);
  const std::string why = breach(name, metrics);
  if (!why.empty()) verdict.add_failure(why);
  verdict.compared += elements_of(yardstick.rows);
  verdict.tensors.emplace(name, metrics);
}

void judge_inverse_bound(const Problem& problem, const Tensors& inputs, const Tensor& Ainv, const Yardstick& yardstick,
                         Verdict& verdict) {
  const Rows& rows = yardstick.rows;
  const auto bound = inverse_bound(problem, inputs, rows);
  const auto got = to_f64(Ainv);
  std::int64_t beyond = 0, first = -1;
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t row = s.first + i * s.stride;
      const auto r = static_cast<std::size_t>(row);
      const double slack = kElementRatio * yardstick.budget.row[r] / std::sqrt(yardstick.budget.spread[r]);
      for (std::int64_t j = row * rows.width; j < (row + 1) * rows.width; ++j)
        if (!(std::abs(got[static_cast<std::size_t>(j)]) <= bound[static_cast<std::size_t>(j)] + slack) && beyond++ == 0)
          first = j;
    }
  if (beyond == 0) return;
  std::ostringstream text;
  text << "Ainv: " << beyond << " entries pass beta_i |k_i||k_j| decay(i, j), the first at "
       << place(problem, "Ainv", Ainv.shape(), first) << ": got " << got[static_cast<std::size_t>(first)] << ", bound "
       << bound[static_cast<std::size_t>(first)];
  verdict.add_failure(text.str());
}

}  // namespace deltagauge::validate
