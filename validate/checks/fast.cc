#include "validate/checks/fast.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/inputs.h"
#include "core/op.h"
#include "validate/rows.h"
#include "validate/yardsticks.h"

namespace deltagauge::validate {
namespace {

// Tokens by (sequence, head), as their places in the sequence.
using Tokens = std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>>;

// Where an element of a tensor of rows a token, or of states, is 0 in `fast` alone. States have no token: theirs is 0.
Tokens flushed(const Problem& problem, const std::string& name, const Tensor& fast, const Tensor& precise,
               const Tensor& want) {
  Tokens places;
  const Rows rows = rows_of(problem, name, fast.shape());
  for (const Series& s : rows.series)
    for (std::int64_t i = 0; i < s.count; ++i) {
      const std::int64_t first = (s.first + i * s.stride) * rows.width;
      for (std::int64_t j = first; j < first + rows.width; ++j)
        if (fast.load(j) == 0 && precise.load(j) != 0 && want.load(j) != 0)
          places[{s.sequence, s.head}].insert(s.block < 0 ? i : 0);
    }
  return places;
}

// Tokens that read the state before their chunk or an earlier token of it, or are written to the state after it, through a
// decay that is not 0 in f32 and below its normal range.
Tokens behind_subnormal_decays(const Problem& problem, const Tensor& g, std::int64_t chunk) {
  const double smallest = smallest_normal(DType::f32);
  const auto subnormal = [&](double sum) {
    const double decay = round_to(DType::f32, std::exp(sum));
    return decay > 0 && decay < smallest;
  };
  Tokens places;
  const auto offsets = problem.offsets();
  for (std::size_t n = 0; n < problem.lengths.size(); ++n)
    for (std::int64_t first = 0; first < problem.lengths[n]; first += chunk)
      for (std::int64_t h = 0; h < problem.HV; ++h) {
        const std::int64_t end = std::min(first + chunk, problem.lengths[n]);
        for (std::int64_t from = first - 1; from < end; ++from) {  // first - 1: the state
          double sum = 0;
          for (std::int64_t to = from + 1; to < end; ++to)
            if (subnormal(sum += g.load((offsets[n] + to) * problem.HV + h)))
              places[{static_cast<std::int64_t>(n), h}].insert(to);
          if (from >= first && subnormal(sum)) places[{static_cast<std::int64_t>(n), h}].insert(from);
        }
      }
  return places;
}

std::int64_t count(const Problem& problem, const Tokens& places) {  // of tokens, whatever their heads
  const auto offsets = problem.offsets();
  std::set<std::int64_t> tokens;
  for (const auto& [place, found] : places)
    for (const std::int64_t token : found) tokens.insert(offsets[static_cast<std::size_t>(place.first)] + token);
  return static_cast<std::int64_t>(tokens.size());
}

constexpr std::size_t kMostShown = 4;  // of a list, before "and N more"

// Items one behind the other, those past the first few as a number.
std::string listed(const std::vector<std::string>& items, const char* between) {
  std::string text;
  for (std::size_t i = 0; i < std::min(items.size(), kMostShown); ++i) text += (i ? between : "") + items[i];
  return items.size() <= kMostShown ? text : text + " and " + std::to_string(items.size() - kMostShown) + " more";
}

// "0-2, 5": runs of numbers.
std::string runs_of(const std::set<std::int64_t>& numbers) {
  std::vector<std::string> runs;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const std::int64_t first = *at;
    std::int64_t last = first;
    while (++at != numbers.end() && *at == last + 1) ++last;
    runs.push_back(std::to_string(first) + (last > first ? "-" + std::to_string(last) : ""));
  }
  return listed(runs, ", ");
}

// "2 of 64 tokens, sequence 0 head 0-3 token 62-63": sequences and heads with the same tokens stand together.
std::string named(const Problem& problem, const Tokens& places, bool tokens) {
  std::map<std::pair<std::int64_t, std::set<std::int64_t>>, std::set<std::int64_t>> heads;
  for (const auto& [place, found] : places) heads[{place.first, found}].insert(place.second);
  std::vector<std::string> items;
  for (const auto& [where, of] : heads)
    items.push_back("sequence " + std::to_string(where.first) + " head " + runs_of(of) +
                    (tokens ? " token " + runs_of(where.second) : ""));
  const std::string many = std::to_string(count(problem, places)) + " of " + std::to_string(problem.tokens()) + " tokens, ";
  return (tokens ? many : "") + listed(items, "; ");
}

// Names what is 0 in the fast run alone, and files how many tokens and states there are.
std::string lost(const Problem& problem, const Tensors& got, const Tensors& beside, const Tensors& gold,
                 std::map<std::string, double>& values) {
  std::vector<std::string> parts;
  double tokens = 0, states = 0;
  for (const TensorSpec& spec : op_info(problem.op).outputs(problem)) {
    const Tokens places = flushed(problem, spec.name, get(got, spec.name), get(beside, spec.name), get(gold, spec.name));
    const bool by_token = spec.token_dim == 0;
    (by_token ? tokens : states) += static_cast<double>(by_token ? count(problem, places) : std::ssize(places));
    if (!places.empty()) parts.push_back(spec.name + " is 0 in fast mode alone: " + named(problem, places, by_token));
  }
  values["flushed_tokens"] = tokens;
  values["flushed_states"] = states;
  return listed(parts, "; ");
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

  verdict.note = lost(fast, got, beside, gold, verdict.values);
  if (fast.op == "gdn") {
    const std::int64_t staged = reference::staging(backend.staging(fast)).chunk;
    const Tokens places = behind_subnormal_decays(fast, log_decays(fast, inputs), std::max<std::int64_t>(1, staged));
    verdict.values["subnormal_tokens"] = static_cast<double>(count(fast, places));
    if (!places.empty())
      verdict.note += (verdict.note.empty() ? "" : "; ") + ("behind decays subnormal in f32: " + named(fast, places, true));
  }
  if (verdict.outcome == reports::Outcome::fail && !verdict.note.empty()) verdict.add_failure(verdict.note);
  return verdict;
}

}  // namespace deltagauge::validate
