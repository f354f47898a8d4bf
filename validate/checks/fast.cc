#include "validate/checks/fast.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <sstream>

#include "core/inputs.h"
#include "core/op.h"
#include "validate/yardsticks.h"

namespace deltagauge::validate {
namespace {

// Tokens where an element of a tensor of rows a token is 0 in `fast` alone.
std::set<std::int64_t> flushed_tokens(const Problem& problem, const Tensor& fast, const Tensor& precise,
                                      const Tensor& want) {
  std::set<std::int64_t> tokens;
  const std::int64_t width = fast.dim(0) ? fast.numel() / fast.dim(0) : 0;
  for (std::int64_t i = 0; i < problem.tokens() * width; ++i)
    if (fast.load(i) == 0 && precise.load(i) != 0 && want.load(i) != 0) tokens.insert(i / width);
  return tokens;
}

// Tokens whose decay from the start of their chunk, or to its end, is not 0 in f32 and below its normal range.
std::int64_t subnormal_tokens(const Problem& problem, const Tensor& g, std::int64_t chunk) {
  const double smallest = smallest_normal(DType::f32);
  const auto subnormal = [&](double sum) {
    const double decay = round_to(DType::f32, std::exp(sum));
    return decay > 0 && decay < smallest;
  };
  std::set<std::int64_t> tokens;
  const auto offsets = problem.offsets();
  for (std::size_t n = 0; n < problem.lengths.size(); ++n)
    for (std::int64_t first = offsets[n]; first < offsets[n + 1]; first += chunk)
      for (std::int64_t h = 0; h < problem.HV; ++h) {
        const std::int64_t end = std::min(first + chunk, offsets[n + 1]);
        double from_start = 0, to_end = 0;
        for (std::int64_t row = first; row < end; ++row)
          if (subnormal(from_start += g.load(row * problem.HV + h))) tokens.insert(row);
        for (std::int64_t row = end - 1; row >= first; to_end += g.load(row * problem.HV + h), --row)
          if (subnormal(to_end)) tokens.insert(row);
      }
  return static_cast<std::int64_t>(tokens.size());
}

}  // namespace

Verdict Fast::run(Context& context, const Backend& backend) const {
  Problem fast = context.problem(), precise = fast;
  fast.math = MathMode::fast;
  precise.math = MathMode::precise;
  for (const Problem* mode : {&fast, &precise})
    if (const auto why = backend.unsupported(*mode)) return skip(*why);

  Verdict verdict;
  const Tensors &inputs = context.inputs(), &gold = context.gold();
  const auto judge = [&](const Problem& mode, const std::string& suffix) {
    Tensors got = outputs_of(backend, mode, inputs);
    judge_all(got, own_yardsticks(mode, inputs, gold, reference::staging(backend.staging(mode))), suffix, verdict);
    return got;
  };
  const Tensors got = judge(fast, ""), beside = judge(precise, ".precise");

  std::set<std::int64_t> tokens;
  for (const TensorSpec& spec : op_info(fast.op).outputs(fast))
    if (spec.token_dim == 0)
      tokens.merge(flushed_tokens(fast, get(got, spec.name), get(beside, spec.name), get(gold, spec.name)));
  verdict.values["flushed_tokens"] = static_cast<double>(tokens.size());
  if (fast.op == "gdn") {
    const std::int64_t staged = reference::staging(backend.staging(fast)).chunk;
    const std::int64_t at_risk = subnormal_tokens(fast, log_decays(fast, inputs), std::max<std::int64_t>(1, staged));
    verdict.values["subnormal_tokens"] = static_cast<double>(at_risk);
  }
  if (verdict.outcome == reports::Outcome::fail && !tokens.empty()) {
    std::ostringstream text;
    text << tokens.size() << " of " << fast.tokens() << " tokens are 0 in fast mode alone, the first is token "
         << *tokens.begin();
    verdict.add_failure(text.str());
  }
  return verdict;
}

}  // namespace deltagauge::validate
