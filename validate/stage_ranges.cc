#include "validate/stage_ranges.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/op.h"
#include "validate/checks/check.h"
#include "validate/rows.h"

namespace deltagauge::validate {
namespace {

using reports::StageRange;

// In the order in which one feeds the next.
constexpr std::string_view kOrder[] = {"decay_i", "decay_j", "decay", "Akk",           "Ainv", "P",
                                       "S",       "resid",   "v_new", "v_new_decayed", "o",    "final_state"};

std::size_t place(std::string_view stage) {
  return static_cast<std::size_t>(std::find(std::begin(kOrder), std::end(kOrder), stage) - std::begin(kOrder));
}

struct Count {
  StageRange range;
  std::int64_t wrong = 0;   // not finite where the right value fits the format
  std::int64_t beyond = 0;  // right values past the end of the format
};

// Judged elements of got, a tensor of its own dtype, beside the right ones. want may be null.
Count count(const Tensor& got, const Tensor* want, const Rows& rows) {
  const DType format = got.dtype();
  Count c{.range = {.dtype = std::string(name(format))}};
  double smallest = HUGE_VAL;
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i)
      for (std::int64_t j = 0, row = (s.first + i * s.stride) * rows.width; j < rows.width; ++j) {
        const double x = std::fabs(got.load(row + j)), right = want ? std::fabs(want->load(row + j)) : x;
        const bool fits = !want || std::isfinite(round_to(format, right));
        ++c.range.values;
        c.beyond += !fits;
        if (!std::isfinite(x)) {
          ++c.range.overflows;
          c.wrong += fits;
          continue;
        }
        if (right != 0 && x < smallest_normal(format)) ++c.range.flushes;
        if (x == 0) continue;
        smallest = std::min(smallest, x);
        c.range.max_abs = std::max(c.range.max_abs, x);
      }
  if (c.range.max_abs > 0) c.range.min_abs = smallest;
  return c;
}

StageRange report_of(const reference::Range& r) {
  return {.dtype = std::string(name(r.format)),
          .min_abs = r.max_abs > 0 ? r.min_abs : 0,
          .max_abs = r.max_abs,
          .values = r.count,
          .overflows = r.overflows + r.non_finite,
          .flushes = r.flushed + r.subnormals};
}

void add_values(const std::string& stage, const StageRange& range, std::map<std::string, double>& values) {
  if (!(range.max_abs > 0)) return;
  const DType format = parse_dtype(range.dtype);
  values[stage + ".min_exponent"] = std::ilogb(range.min_abs);
  values[stage + ".max_exponent"] = std::ilogb(range.max_abs);
  values[stage + ".headroom_bits"] = std::log2(largest_finite(format)) - std::log2(range.max_abs);
  values[stage + ".subnormal_bits"] = std::log2(range.min_abs) - std::log2(smallest_normal(format));
}

std::string in_words(const std::string& stage, const StageRange& range, std::int64_t wrong) {
  std::ostringstream text;
  text.precision(4);
  text << stage << ": " << wrong << " of " << range.values << " values are not finite in " << range.dtype
       << " where they should be; the largest before its store is " << range.max_abs << ", the format ends at "
       << largest_finite(parse_dtype(range.dtype));
  return text.str();
}

}  // namespace

const reference::Staging* emulated_staging(const Backend& backend) {
  for (const std::string_view prefix : {"reference.as_kernel.", "reference.peer."})
    if (backend.name().starts_with(prefix)) return &reference::staging(backend.name().substr(prefix.size()));
  return nullptr;
}

StageRanges stage_ranges(const Backend& backend, const Problem& problem, const Tensors& inputs, const Tensors& gold,
                         const std::function<const Tensor*(std::string_view tap)>& right_tap) {
  const reference::Staging* emulated = emulated_staging(backend);
  StageRanges result;
  reference::Ranges met;
  Problem with_chunk = problem;  // the chunk that the backend's taps are counted in
  if (const std::int64_t chunk = reference::staging(backend.staging(problem)).chunk) with_chunk.chunk = chunk;
  Tensors got = emulated ? reference::run(problem, inputs, *emulated, false, &met)
                         : outputs_of(backend, with_chunk, inputs, {.taps = true});

  std::map<std::string, std::int64_t> wrong;
  std::int64_t beyond = 0;
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) {
    const Tensor &tensor = get(got, spec.name), &want = get(gold, spec.name);
    const Count c = count(tensor, &want, rows_of(problem, spec.name, want.shape()));
    result.ranges[spec.name] = c.range;
    wrong[spec.name] = c.wrong;
    beyond += c.beyond;
    result.outputs.emplace(spec.name, tensor);
  }
  for (const auto& [stage, range] : met) {
    result.ranges[stage] = report_of(range);
    if (!wrong.contains(stage)) wrong[stage] = beyond ? 0 : result.ranges[stage].overflows;
  }
  if (!emulated)
    for (const auto& [tap, tensor] : got) {
      if (result.outputs.contains(tap) || place(tap) == std::size(kOrder)) continue;
      const Count c = count(tensor, right_tap(tap), rows_of(with_chunk, tap, tensor.shape()));
      result.ranges[tap] = c.range;
      wrong[tap] = beyond ? 0 : c.range.overflows;
    }
  std::size_t first = std::size(kOrder) + 1;
  for (const auto& [stage, range] : result.ranges) {
    add_values(stage, range, result.values);
    if (wrong[stage] == 0 || place(stage) >= first) continue;
    first = place(stage);
    result.overflow = in_words(stage, range, wrong[stage]);
  }
  return result;
}

}  // namespace deltagauge::validate
