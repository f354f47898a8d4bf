#include "validate/checks/lattice.h"

#include <sstream>

#include "core/op.h"

namespace deltagauge::validate {

Verdict Lattice::run(Context& context, const Backend& backend) const {
  const Problem& problem = context.problem();
  if (problem.data.kind != "lattice") return skip("not a lattice case: data=" + to_string(problem.data));
  const Tensors got = outputs_of(backend, problem, context.inputs());
  Verdict verdict;
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) {
    const Tensor& tensor = get(got, spec.name);
    const Yardstick& yardstick = context.output(backend.staging(problem), spec.name);
    const auto have = to_f64(tensor), want = to_f64(*yardstick.want);
    const auto metrics = measure(tensor, *yardstick.want, yardstick.rows, yardstick.budget);
    verdict.tensors.emplace(spec.name, metrics);
    verdict.compared += elements_of(yardstick.rows);
    std::int64_t differ = 0, first = -1;
    for (const Series& s : yardstick.rows.series)
      for (std::int64_t i = 0; i < s.count; ++i) {
        const std::int64_t row = s.first + i * s.stride;
        for (std::int64_t j = row * yardstick.rows.width; j < (row + 1) * yardstick.rows.width; ++j) {
          const double w = round_to(tensor.dtype(), want[static_cast<std::size_t>(j)]),
                       g = have[static_cast<std::size_t>(j)];
          if (!(g == w) && differ++ == 0) first = j;
        }
      }
    if (differ == 0) continue;
    std::ostringstream text;
    text << spec.name << ": " << differ << " elements are not exact, the first at "
         << place(problem, spec.name, tensor.shape(), first) << ": got " << have[static_cast<std::size_t>(first)]
         << ", want " << want[static_cast<std::size_t>(first)];
    verdict.add_failure(text.str());
  }
  return verdict;
}

}  // namespace deltagauge::validate
