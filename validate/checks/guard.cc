#include "validate/checks/guard.h"

#include <sstream>

#include "core/op.h"

namespace deltagauge::validate {
namespace {

// Which elements of an output are judged rows.
std::vector<bool> active(const Rows& rows) {
  std::vector<bool> mask(static_cast<std::size_t>(rows.total * rows.width), false);
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t begin = (s.first + i * s.stride) * rows.width;
      for (std::int64_t j = begin; j < begin + rows.width; ++j) mask[static_cast<std::size_t>(j)] = true;
    }
  return mask;
}

void judge_written(const Problem& problem, const std::string& name, const Shape& shape, const std::vector<bool>& nan,
                   const std::vector<bool>& huge, bool in_place, Verdict& verdict) {
  const auto judged = active(rows_of(problem, name, shape));
  verdict.compared += static_cast<std::int64_t>(judged.size());  // past the active end too
  std::int64_t unwritten = 0, suffix = 0, first_unwritten = -1, first_suffix = -1;
  for (std::size_t j = 0; j < judged.size(); ++j) {
    if (!in_place && judged[j] && nan[j] && huge[j] && unwritten++ == 0) first_unwritten = static_cast<std::int64_t>(j);
    if (!judged[j] && !(nan[j] && huge[j]) && suffix++ == 0) first_suffix = static_cast<std::int64_t>(j);
  }
  std::ostringstream text;
  if (unwritten)
    text << name << ": " << unwritten << " elements were not written, the first at "
         << place(problem, name, shape, first_unwritten);
  if (suffix)
    text << (unwritten ? "; " : "") << name << ": " << suffix << " elements "
         << (in_place ? "of slots that no sequence owns" : "past the active end") << " were written, the first at "
         << place(problem, name, shape, first_suffix);
  if (unwritten || suffix) verdict.add_failure(text.str());
}

}  // namespace

Verdict Guard::run(Context& context, const Backend& backend) const {
  const Problem& problem = context.problem();
  const auto specs = op_info(problem.op).outputs(problem);
  const auto nan = planned(backend, problem, context.inputs(), {.fill = Fill::nan});
  const auto huge = planned(backend, problem, context.inputs(), {.fill = Fill::huge});
  run_plan(*nan);
  run_plan(*huge);
  Verdict verdict;
  for (const auto* plan : {nan.get(), huge.get()})
    for (const std::string& damage : plan->audit())
      verdict.add_failure((plan == nan.get() ? "NaN guards: " : "1e30 guards: ") + damage);
  const Tensors with_nan = nan->outputs(), with_huge = huge->outputs();
  for (const TensorSpec& spec : specs) {
    const auto mask_nan = nan->untouched(spec.name), mask_huge = huge->untouched(spec.name);
    const Tensor& tensor = get(with_nan, spec.name);
    const auto elements = static_cast<std::size_t>(tensor.numel());
    if (mask_nan.size() != elements || mask_huge.size() != elements)
      return skip("backend lays no guards around its tensors");
    judge_written(problem, spec.name, tensor.shape(), mask_nan, mask_huge, !spec.in_place_of.empty(), verdict);
  }
  expect_same_bits(problem, with_huge, with_nan, "under 1e30 guards against NaN guards", verdict);
  return verdict;
}

}  // namespace deltagauge::validate
