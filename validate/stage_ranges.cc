#include "validate/stage_ranges.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "validate/checks/check.h"
#include "validate/metrics.h"
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
        ++c.range.values;
        c.beyond += want && !std::isfinite(round_to(format, right));
        if (!std::isfinite(x)) {
          ++c.range.overflows;
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

// A stage with values that are not finite and should be.
struct Wrong {
  std::int64_t count = 0;
  bool origin = false;  // some were finite before they were stored
};

std::string in_words(const std::string& stage, const StageRange& range, const Wrong& wrong) {
  std::ostringstream text;
  text.precision(5);
  text << stage << ": " << wrong.count << " of " << range.values << " values ";
  if (wrong.origin)
    text << "overflow " << range.dtype << ", which ends at " << largest_finite(parse_dtype(range.dtype))
         << ", and should not";
  else
    text << "are not finite before they are stored, and should be";
  text << "; the largest finite one is " << range.max_abs;
  return text.str();
}

}  // namespace

const reference::Staging* emulated_staging(const Backend& backend) {
  for (const std::string_view prefix : {"reference.as_kernel.", "reference.peer."})
    if (backend.name().starts_with(prefix)) return &reference::staging(backend.name().substr(prefix.size()));
  return nullptr;
}

StageRanges stage_ranges(const Backend& backend, const Problem& problem, const Tensors& inputs, const Yardsticks& yardsticks,
                         const std::function<const Tensor*(std::string_view tap)>& right_tap) {
  const reference::Staging* emulated = emulated_staging(backend);
  StageRanges result;
  reference::Ranges met;
  Problem with_chunk = problem;  // the chunk that the backend's taps are counted in
  if (const std::int64_t chunk = reference::staging(backend.staging(problem)).chunk) with_chunk.chunk = chunk;
  Tensors got = emulated ? reference::run(problem, inputs, *emulated, false, &met)
                         : outputs_of(backend, with_chunk, inputs, {.taps = true});

  std::map<std::string, Wrong> wrong;
  std::int64_t beyond = 0;
  for (const auto& [output, yardstick] : yardsticks) {
    const Tensor& tensor = get(got, output);
    const Count c = count(tensor, yardstick.want, yardstick.rows);
    result.ranges[output] = c.range;
    const std::int64_t non_finite = measure(tensor, *yardstick.want, yardstick.rows, yardstick.budget).non_finite;
    if (non_finite) wrong[output] = {non_finite, c.range.overflows > 0};
    beyond += c.beyond;
    result.outputs.emplace(output, tensor);
  }
  for (const auto& [stage, range] : met) {
    result.ranges[stage] = report_of(range);
    const bool output = result.outputs.contains(stage);
    if (output && wrong.contains(stage)) wrong[stage].origin = range.overflows > 0;
    if (!output && !beyond && range.overflows + range.non_finite) {
      wrong[stage] = {range.overflows ? range.overflows : range.non_finite, range.overflows > 0};
    }
  }
  if (!emulated)
    for (const auto& [tap, tensor] : got) {
      if (result.outputs.contains(tap) || place(tap) == std::size(kOrder)) continue;
      const Count c = count(tensor, right_tap(tap), rows_of(with_chunk, tap == "P" ? "Akk" : tap, tensor.shape()));
      result.ranges[tap] = c.range;
      if (!beyond && c.range.overflows) wrong[tap] = {c.range.overflows, true};
    }
  for (const auto& [stage, range] : result.ranges) add_values(stage, range, result.values);
  const auto first = std::min_element(wrong.begin(), wrong.end(), [](const auto& a, const auto& b) {
    return std::pair(!a.second.origin, place(a.first)) < std::pair(!b.second.origin, place(b.first));
  });
  if (first != wrong.end()) result.overflow = in_words(first->first, result.ranges[first->first], first->second);
  return result;
}

}  // namespace deltagauge::validate
